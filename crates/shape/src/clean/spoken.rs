//! Secrets as people write them down: under labels of other languages, with the user in front, and as words of a seed.

use std::ops::{Range, RangeInclusive};

use super::{
    assign,
    bytes::ByteSet,
    found::{Found, Next},
    line::Line,
    name::NameKind,
    place::skip,
    value::{self, Written},
};

/// What a password or a key is called elsewhere. Letters without case only, or both cases.
const LABELS: &[(&str, NameKind)] = &[
    ("密码", NameKind::Password),
    ("密碼", NameKind::Password),
    ("口令", NameKind::Password),
    ("密钥", NameKind::Key),
    ("密鑰", NameKind::Key),
    ("秘钥", NameKind::Key),
    ("令牌", NameKind::Token),
    ("パスワード", NameKind::Password),
    ("暗証番号", NameKind::Password),
    ("秘密鍵", NameKind::Key),
    ("비밀번호", NameKind::Password),
    ("암호", NameKind::Password),
    ("пароль", NameKind::Password),
    ("Пароль", NameKind::Password),
    ("ПАРОЛЬ", NameKind::Password),
    ("κωδικός", NameKind::Password),
    ("Κωδικός", NameKind::Password),
    ("κωδικός πρόσβασης", NameKind::Password),
    ("Κωδικός πρόσβασης", NameKind::Password),
    ("كلمة المرور", NameKind::Password),
    ("كلمة السر", NameKind::Password),
    ("סיסמה", NameKind::Password),
    ("סיסמא", NameKind::Password),
    ("पासवर्ड", NameKind::Password),
    ("รหัสผ่าน", NameKind::Password),
    ("mật khẩu", NameKind::Password),
    ("jelszó", NameKind::Password),
    ("passord", NameKind::Password),
    ("passordet", NameKind::Password),
    ("lösenordet", NameKind::Password),
    ("adgangskoden", NameKind::Password),
    ("palavra-passe", NameKind::Password),
    ("palavra passe", NameKind::Password),
    ("kata sandi", NameKind::Password),
    ("lozinka", NameKind::Password),
    ("geslo", NameKind::Password),
    ("contrasenya", NameKind::Password),
    ("contraseña", NameKind::Password),
    ("mot de passe", NameKind::Password),
    ("senha", NameKind::Password),
    ("wachtwoord", NameKind::Password),
    ("kennwort", NameKind::Password),
    ("lösenord", NameKind::Password),
    ("adgangskode", NameKind::Password),
    ("salasana", NameKind::Password),
    ("hasło", NameKind::Password),
    ("heslo", NameKind::Password),
    ("şifre", NameKind::Password),
    ("Şifre", NameKind::Password),
    ("parola", NameKind::Password),
];

/// How far from its label a user and a password may be.
const MAX_USER: usize = 64;
/// As few words as a seed has.
const MIN_SEED_WORDS: usize = 12;
/// How many letters such a word has.
const SEED_WORD: RangeInclusive<usize> = 3..=8;
/// As long as 24 words can be, with numbers between them.
const MAX_SEED: usize = 400;

/// The labels above, for the search.
pub(super) fn labels() -> impl Iterator<Item = &'static [u8]> {
    LABELS.iter().map(|(label, _)| label.as_bytes())
}

/// `密码：value`
pub(super) fn label(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let name = &line[word.clone()];
    let is_part =
        |at: Option<usize>| at.is_some_and(|at| line.get(at).is_some_and(u8::is_ascii_alphanumeric));
    if is_part(word.start.checked_sub(1)) || is_part(Some(word.end)) {
        return Next::at(word.end);
    }
    let kind = LABELS.iter().find(|(label, _)| name.eq_ignore_ascii_case(label.as_bytes()));
    kind.map_or_else(|| Next::at(word.end), |(_, kind)| assign::find_named(line, word.clone(), *kind, found))
}

/// `credentials: user / password`, `the login is user / password`, `BASIC_AUTH=user:password`
pub(super) fn pair(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let separator = skip(line, word.end, b"\"' ");
    let is_said = line[separator..].starts_with(b"is ");
    if !is_said && !line.get(separator).is_some_and(|byte| b":=".contains(byte)) {
        return Next::at(word.end);
    }
    let at = skip(line, separator + if is_said { 2 } else { 1 }, b"\"' ");
    let is_user = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.@".contains(byte);
    let user = line[at..].iter().take(MAX_USER).take_while(is_user).count();
    let mark = skip(line, at + user, b" ");
    if user == 0 || !line.get(mark).is_some_and(|byte| b":/".contains(byte)) {
        return Next::at(word.end);
    }
    let start = skip(line, mark + 1, b" ");
    // `Auth::Empty`
    if line.get(start) == Some(&b':') {
        return Next::at(word.end);
    }
    let is_part = |byte: &&u8| !byte.is_ascii_whitespace() && !b"\"'`,;<>\\".contains(byte);
    let range = start..start + line[start..].iter().take(MAX_USER).take_while(is_part).count();
    let text = &line[range.clone()];
    let is_secret = match line[separator] {
        b'=' => value::is_password(text),
        _ => value::is_secret(text, Written::Quoted, NameKind::Password),
    };
    if is_secret {
        let resume = range.end;
        found.push(Found::value(line, range, "password", "a user and a password"));
        return Next::at(resume);
    }
    Next::at(word.end)
}

/// `mnemonic: word word word …`
pub(super) fn seed(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let start = skip(line, word.end, b"_phrase=:\\\"' ");
    if let Some(length) = words_length(&line[start..line.len().min(start + MAX_SEED)]) {
        let range = start..start + length;
        let resume = range.end;
        found.push(Found { range, label: "seed-phrase", why: "words that a wallet is made from" });
        return Next::at(resume);
    }
    assign::find(line, word, found)
}

/// How long the words of a seed are that begin here. Prose has articles, and other words shorter than those of a seed.
fn words_length(text: &[u8]) -> Option<usize> {
    static LETTERS: ByteSet = ByteSet::new(b"abcdefghijklmnopqrstuvwxyz");
    let (mut words, mut length, mut at) = (0, 0, 0);
    loop {
        match LETTERS.run(&text[at..text.len().min(at + SEED_WORD.end() + 1)]) {
            0 => return (words >= MIN_SEED_WORDS).then_some(length),
            letters if SEED_WORD.contains(&letters) => (words, length) = (words + 1, at + letters),
            _ => return None,
        }
        at = length + usize::from(text.get(length) == Some(&b' '));
    }
}
