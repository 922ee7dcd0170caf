//! Labelled cases: what must be hidden, and what only looks as if.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read fails the test")]

use windlass_shape::{Cleaner, Secrets};

/// A text with its secrets, and the pieces of each that must not be left.
struct Case {
    text: String,
    secrets: Vec<String>,
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pattern(&mut self, pattern: &str) -> String {
        let mut text = String::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('%') {
            text.push_str(literal);
            let class = after.chars().next().unwrap();
            let Some((count, after)) = after[1..].strip_prefix('{').and_then(|after| after.split_once('}'))
            else {
                // A plain `%`, as in an address.
                text.push('%');
                rest = after;
                continue;
            };
            for _ in 0..count.parse().unwrap() {
                let alphabet = alphabet(class);
                text.push(char::from(alphabet[self.below(alphabet.len())]));
            }
            rest = after;
        }
        text + rest
    }
}

fn alphabet(class: char) -> &'static [u8] {
    const ALL: &[u8; 64] = b"+/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    match class {
        'd' => &ALL[2..12],
        'h' => b"0123456789abcdef",
        'U' => &ALL[2..38],
        'l' => b"0123456789abcdefghijklmnopqrstuvwxyz",
        'a' => &ALL[12..],
        'u' => b"-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        'b' => ALL,
        'w' => &ALL[2..],
        other => panic!("no class {other}"),
    }
}

fn cases(file: &str) -> Vec<Case> {
    drawn(file, 0)
}

/// The cases of a file, with other values in each draw.
fn drawn(file: &str, draw: usize) -> Vec<Case> {
    let lines = file.lines().filter(|line| !line.starts_with("# ") && !line.is_empty());
    lines.enumerate().map(|(number, line)| case(number + draw * 100_000, line)).collect()
}

fn case(number: usize, line: &str) -> Case {
    let mut random = Random(u64::try_from(number).unwrap() * 7919 + 17);
    let line = line
        .replace(r"\\n", "\u{1}")
        .replace(r"\n", "\n")
        .replace('\u{1}', r"\n")
        .replace(r"\t", "\t")
        .replace(r"\r", "\r");
    let line = line.replace(r"\x1b", "\u{1b}");
    let (mut text, mut secrets) = (String::new(), Vec::new());
    let mut rest = &line[..];
    while let Some(open) = rest.find(['«', '‹']) {
        text.push_str(&rest[..open]);
        let is_secret = rest[open..].starts_with('«');
        let close = rest.find(['»', '›']).unwrap();
        let mark = if is_secret { '«' } else { '‹' }.len_utf8();
        let made = random.pattern(&rest[open + mark..close]);
        text.push_str(&made);
        if is_secret {
            secrets.push(made);
        }
        rest = &rest[close + if is_secret { '»' } else { '›' }.len_utf8()..];
    }
    text.push_str(rest);
    text.push('\n');
    Case { text, secrets }
}

/// Whether a run of the secret is left: a quarter of it, at least 6 and at most 12 characters.
fn is_left(secret: &str, text: &str) -> bool {
    let length = (secret.len() / 4).clamp(6, 12).min(secret.len());
    secret.as_bytes().windows(length).any(|run| text.as_bytes().windows(length).any(|window| window == run))
}

#[test]
fn secrets_are_gone() {
    let cases = cases(&[include_str!("cases/secrets.txt"), include_str!("cases/more-secrets.txt")].concat());
    assert!(cases.len() >= 150, "{}", cases.len());
    let mut left = Vec::new();
    for case in &cases {
        let cleaned = Secrets::default().clean(&case.text);
        left.extend(
            case.secrets.iter().filter(|secret| is_left(secret, &cleaned)).map(|_| cleaned.to_string()),
        );
    }
    assert!(left.is_empty(), "{} left:\n{}", left.len(), left.join(""));
}

#[test]
fn look_alikes_stay() {
    let cases =
        cases(&[include_str!("cases/look-alikes.txt"), include_str!("cases/more-look-alikes.txt")].concat());
    assert!(cases.len() >= 150, "{}", cases.len());
    let touched: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let cleaned = Secrets::default().clean(&case.text);
            (cleaned != case.text).then(|| format!("{}  -> {cleaned}", case.text))
        })
        .collect();
    assert!(touched.is_empty(), "{} touched:\n{}", touched.len(), touched.join(""));
}

/// How many of 100 secrets may be left, and how many of 100 look-alikes may be touched, in texts that nobody looked at while
/// the rules were written.
const MOST_WRONG: usize = 3;
/// How often the values of each text are made anew.
const DRAWS: usize = 8;

#[test]
fn few_secrets_are_left_in_texts_that_no_rule_was_written_for() {
    let file = include_str!("cases/unseen-secrets.txt");
    let cases: Vec<_> = (0..DRAWS).flat_map(|draw| drawn(file, draw)).collect();
    let left = |case: &Case, cleaned: &str| case.secrets.iter().filter(|each| is_left(each, cleaned)).count();
    let all: usize = cases.iter().map(|case| case.secrets.len()).sum();
    let wrong: usize = cases.iter().map(|case| left(case, &Secrets::default().clean(&case.text))).sum();
    assert!(wrong * 100 <= all * MOST_WRONG, "{wrong} of {all}");
}

#[test]
fn few_look_alikes_are_touched_in_texts_that_no_rule_was_written_for() {
    let file = include_str!("cases/unseen-look-alikes.txt");
    let cases: Vec<_> = (0..DRAWS).flat_map(|draw| drawn(file, draw)).collect();
    let wrong = cases.iter().filter(|case| Secrets::default().clean(&case.text) != case.text).count();
    assert!(wrong * 100 <= cases.len() * MOST_WRONG, "{wrong} of {}", cases.len());
}

#[test]
fn where_the_input_is_cut_makes_no_difference() {
    let files = [include_str!("cases/secrets.txt"), include_str!("cases/look-alikes.txt")];
    let text: String = files.iter().flat_map(|file| cases(file)).map(|case| case.text).collect();
    let whole = Secrets::default().clean(&text).into_owned();
    let mut random = Random(1);
    for most in [1, 7, 100, 5000] {
        let mut cleaner = Cleaner::new(&Secrets::default());
        let (mut out, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + random.below(most)).min(rest.len()));
            out.extend(cleaner.push(piece));
            rest = after;
        }
        out.extend(cleaner.finish());
        assert_eq!(String::from_utf8(out).unwrap(), whole);
    }
}
