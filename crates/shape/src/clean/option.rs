//! Passwords given to programs: as options, as words, and through pipes.

use std::ops::Range;

use super::{
    bytes::{self, ByteSet},
    found::{Found, Next},
    line::Line,
    name::NameKind,
    place::skip,
    value::{self, Written},
};

/// Options of programs that take a password: the program, the option, and how the password follows it.
const OPTIONS: &[(&[u8], &[u8], Follows)] = &[
    (b"mysql", b"-p", Follows::Joined),
    (b"mariadb", b"-p", Follows::Joined),
    (b"sshpass", b"-p", Follows::Either),
    (b"redis-cli", b"-a", Follows::Apart),
    (b"docker", b"-p", Follows::AfterLogin),
    (b"podman", b"-p", Follows::AfterLogin),
    (b"helm", b"-p", Follows::AfterLogin),
    (b"curl", b"-u", Follows::Behind(b':')),
    (b"curl", b"--user", Follows::Behind(b':')),
    (b"curl", b"--proxy-user", Follows::Behind(b':')),
    (b"etcdctl", b"--user", Follows::Behind(b':')),
    (b"http ", b"-a", Follows::Behind(b':')),
    (b"http ", b"--auth", Follows::Behind(b':')),
    (b"lftp", b"-u", Follows::Behind(b',')),
    (b"zip ", b"-P", Follows::Apart),
    (b"htpasswd", b"-b", Follows::Nth(2)),
    (b"net ", b"user", Follows::Nth(1)),
    (b"net ", b"use", Follows::Nth(1)),
    (b"ldap", b"-w", Follows::Apart),
    (b"mongo", b"-p", Follows::Apart),
    (b"smbclient", b"-U", Follows::Behind(b'%')),
    (b"mosquitto", b"-P", Follows::Apart),
    (b"7z", b"-p", Follows::Joined),
    (b"unzip", b"-P", Follows::Apart),
    (b"rabbitmqctl", b"add_user", Follows::Nth(1)),
    (b"rabbitmqctl", b"change_password", Follows::Nth(1)),
    (b"openssl", b"-k", Follows::Apart),
    (b"ssh-keygen", b"-N", Follows::Apart),
    (b"wandb", b"login", Follows::Apart),
    (b"mysqladmin", b"password", Follows::Apart),
    (b"useradd", b"-p", Follows::Apart),
    (b"az login", b"-p", Follows::Apart),
    (b"kinit", b"-p", Follows::Apart),
    (b"snowsql", b"-p", Follows::Apart),
    (b"sqlcmd", b"-P", Follows::Either),
    (b"bcp ", b"-P", Follows::Either),
    (b"cqlsh", b"-p", Follows::Apart),
    (b"xfreerdp", b"/p:", Follows::Joined),
    (b"mc alias", b"set", Follows::Nth(3)),
    (b"user-secrets", b"set", Follows::Nth(1)),
    (b"gh secret", b"--body", Follows::Apart),
    (b"gh secret", b"-b", Follows::Apart),
    (b"snmp-server", b"community", Follows::Apart),
    (b"aws ssm", b"--value", Follows::Apart),
    (b"codecov", b"-t", Follows::Apart),
    (b"snyk", b"auth", Follows::Apart),
    (b"usermod", b"-p", Follows::Apart),
    (b"unrar", b"-p", Follows::Joined),
];

/// How often an option is looked at, and the name of a program where another thing may have it.
const MAX_TIMES: usize = 8;
/// How far a password may be from the program it is given to.
const MAX_PIPE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// `-ppassword`
    Joined,
    /// `-p password`
    Apart,
    /// Both.
    Either,
    /// `-p password`, but only of `login`.
    AfterLogin,
    /// `-u user:password`, with some other sign for some.
    Behind(u8),
    /// `command user password`: so many words come between.
    Nth(usize),
}

/// The programs above, for the search.
pub(super) fn programs() -> impl Iterator<Item = &'static [u8]> {
    let mut names: Vec<_> = OPTIONS.iter().map(|(program, ..)| *program).collect();
    names.dedup();
    names.into_iter()
}

/// Looks for a password among the options of a program.
pub(super) fn option(line: &Line<'_>, program: Range<usize>, found: &mut Vec<Found>) -> Next {
    let next = Next::at(program.end);
    let name = &line[program.clone()];
    let before = program.start.checked_sub(1).map_or(b' ', |at| line[at]);
    // A name of something may be in it: `SSHPASS=`.
    if before.is_ascii_alphanumeric() || name.iter().any(u8::is_ascii_uppercase) {
        return Next::at(program.start + 1);
    }
    // With the byte before, which may be the space that an option follows.
    let rest = &line[program.end - 1..line.len().min(program.end + MAX_PIPE)];
    // What is behind the same program is looked at when that one is: a line of nothing else would cost its square.
    let rest = &rest[..again(rest, name)];
    let rest = &rest[..memchr::memchr2(b'|', b';', rest).unwrap_or(rest.len())];
    for (_, option, follows) in OPTIONS.iter().filter(|(program, ..)| *program == name) {
        let given =
            memchr::memchr2_iter(b' ', b'\t', rest).filter(|space| rest[space + 1..].starts_with(option));
        // Nobody gives an option more often, and a line of nothing else would cost its square too.
        for at in given.take(MAX_TIMES) {
            if *follows == Follows::AfterLogin && memchr::memmem::find(rest, b"login").is_none() {
                break;
            }
            let range = option_value(line, program.end + at + option.len(), *follows);
            // `net` is a word like others.
            let is_given = |text: &[u8]| match name {
                b"net " => at == 0 && value::is_secret(text, Written::Quoted, NameKind::Password),
                _ => value::is_password(text),
            };
            if let Some(range) = range.filter(|range| is_given(&line[range.clone()])) {
                found.push(Found::value(
                    line,
                    range,
                    "password",
                    "option of a program that takes a password",
                ));
            }
        }
    }
    next
}

/// Where the name of a program is again that is looked at there, or is once too often. `docker login docker.io` has one program.
fn again(rest: &[u8], name: &[u8]) -> usize {
    let is_program = |at: usize| {
        at > 0
            && !rest[at - 1].is_ascii_alphanumeric()
            && rest.get(at + name.len()).is_none_or(u8::is_ascii_whitespace)
    };
    let mut places = bytes::places(rest, name).enumerate();
    places.find(|(times, at)| *times == MAX_TIMES || is_program(*at)).map_or(rest.len(), |(_, at)| at)
}

fn option_value(line: &[u8], at: usize, follows: Follows) -> Option<Range<usize>> {
    let is_apart = matches!(line.get(at), Some(b' ' | b'='));
    let fits = match follows {
        Follows::Joined => !is_apart,
        Follows::Either => true,
        _ => is_apart,
    };
    let start = skip(line, at, if is_apart { b" ='\"" } else { b"'\"" });
    let quote = start.checked_sub(1).map(|at| line[at]).filter(|byte| b"'\"".contains(byte));
    let end = match quote {
        Some(quote) => memchr::memchr(quote, &line[start..])?,
        None => line[start..]
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || b"'\"`".contains(byte))
            .unwrap_or(line.len() - start),
    };
    let range = start..start + end;
    let part = match follows {
        Follows::Behind(sign) => memchr::memchr(sign, &line[range.clone()])?,
        Follows::Nth(between) => {
            // `net use Z: \\host\share /user:name password`
            let is_option = |word: &[u8]| match word {
                [b'/', option @ ..] => !option.contains(&b'/'),
                [] | [_, b':'] => true,
                _ => false,
            };
            let mut words = line[at..].split(|byte| *byte == b' ').filter(|word| !is_option(word));
            let word = words.nth(between).filter(|word| fits && !word.starts_with(b"*"))?;
            let start = word.as_ptr().addr() - line.as_ptr().addr();
            return Some(unquoted(line, start));
        }
        _ => return (fits && !line[range.clone()].starts_with(b"-")).then_some(range),
    };
    Some(range.start + part + 1..range.end)
}

/// `echo password | docker login --password-stdin`, `echo user:password | chpasswd`, `sudo -S <<< password`.
pub(super) fn piped(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let next = Next::at(word.end);
    let rest = &line[word.end..line.len().min(word.end + MAX_PIPE)];
    let rest = &rest[..memchr::memmem::find(rest, &line[word.clone()]).unwrap_or(rest.len())];
    let line = &line[..word.end + rest.len()];
    let here = memchr::memmem::find(rest, b"<<<").map(|at| skip(line, word.end + at + 3, b" "));
    let Some(start) = here.or_else(|| echoed(line, &word)) else { return next };
    let range = unquoted(line, start);
    let is_pair = line[word].eq_ignore_ascii_case(b"chpasswd");
    let colon = memchr::memchr(b':', &line[range.clone()]).filter(|_| is_pair);
    let range = colon.map_or(range.start, |colon| range.start + colon + 1)..range.end;
    if value::is_password(&line[range.clone()]) {
        found.push(Found::value(line, range, "password", "given to a program that reads a password"));
    }
    next
}

/// Where the text begins that a command prints into the pipe of a program.
fn echoed(line: &[u8], program: &Range<usize>) -> Option<usize> {
    let (name, line) = (&line[program.clone()], &line[..program.start]);
    let from = line.len().saturating_sub(MAX_PIPE);
    // What is before the same program was printed for that one: a line of nothing else would cost its square.
    let from = memchr::memmem::rfind(&line[from..], name).map_or(from, |at| from + at);
    let line = &line[..from + memchr::memrchr(b'|', &line[from..])?];
    let start = ["echo ", "printf ", "print "].iter().find_map(|command| {
        memchr::memmem::rfind(&line[from..], command.as_bytes()).map(|at| from + at + command.len())
    });
    let mut at = skip(line, start?, b" ");
    while at < line.len() && is_option(&line[at..]) {
        at = skip(line, unquoted(line, at).end, b"'\" ");
    }
    Some(at).filter(|at| *at < line.len())
}

/// `-n`, or a format such as `'%s'`.
fn is_option(text: &[u8]) -> bool {
    matches!(text, [b'-' | b'%', ..] | [b'"' | b'\'', b'%', ..])
}

/// `ConvertTo-SecureString "password"`
pub(super) fn secure_string(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let rest = &line[word.end..];
    let start =
        word.end + rest.iter().take(24).position(|byte| matches!(byte, b'"' | b'\'')).unwrap_or(rest.len());
    let range = unquoted(line, start);
    if start < line.len() && value::is_password(&line[range.clone()]) {
        found.push(Found::value(line, range, "password", "made a secure string"));
    }
    Next::at(word.end)
}

/// The word at a place, without the quotes around it.
pub(super) fn unquoted(line: &[u8], at: usize) -> Range<usize> {
    static ENDS: ByteSet = ByteSet::new(b"'\"`|; \t\n\r\x0c");
    let rest = &line[at.min(line.len())..line.len().min(at + MAX_PIPE).max(at.min(line.len()))];
    match rest.first() {
        Some(quote @ (b'"' | b'\'')) => {
            let end = memchr::memchr(*quote, &rest[1..]).map_or(rest.len(), |end| end + 1);
            let inside = &rest[1..end];
            let (left, right) = (inside.trim_ascii_start().len(), inside.trim_ascii_end().len());
            at + 1 + inside.len() - left..(at + 1 + right).max(at + 1 + inside.len() - left)
        }
        _ => at.min(line.len())..at.min(line.len()) + ENDS.until(rest),
    }
}
