//! Private keys as programs show them: with something in front of each line, around it or between
//! two.

use base64::Engine;

use crate::{Secrets, clean::place::STANDARD};

const ALPHABET: &str = "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A";
const SHORT: &str = "Wd1Ye6Uf3I==";

/// Lines of data, none of which is like another, and a short last one.
fn data(first: &str) -> Vec<String> {
    let line = |turn: usize| format!("{}{}", &ALPHABET[turn..], &ALPHABET[..24 + turn]);
    let first = format!("{first}{}", &line(0)[first.len()..]);
    [first].into_iter().chain((1..14).map(line)).chain([SHORT.to_owned()]).collect()
}

/// A file with these headers between its title and its data.
fn file(title: &str, headers: &[&str], data: &[String]) -> Vec<String> {
    let headers = headers.iter().map(|header| (*header).to_owned());
    let lines = [format!("-----BEGIN {title}-----")].into_iter().chain(headers);
    lines.chain(data.iter().cloned()).chain([format!("-----END {title}-----")]).collect()
}

fn openpgp() -> Vec<String> {
    let mut lines = data("lQOYBGr69KYBCAD");
    lines.push("=zwND".to_owned());
    file("PGP PRIVATE KEY BLOCK", &[""], &lines)
}

fn with_passphrase() -> Vec<String> {
    let headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,CB034E648A4F73AB6FAF7245A92791D1", ""];
    file("RSA PRIVATE KEY", &headers, &data("vAyx"))
}

fn openssh() -> Vec<String> {
    file("OPENSSH PRIVATE KEY", &[], &data("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"))
}

fn show(lines: &[String], line: impl Fn(usize, &str) -> String) -> String {
    lines.iter().enumerate().map(|(at, text)| line(at + 1, text) + "\n").collect()
}

/// Ways to show lines, each with what it is.
fn shown(lines: &[String]) -> Vec<(&'static str, String)> {
    let path = "deployments/production/europe-west/certificates/private/server-signing-key.pem";
    let full: Vec<_> = lines.iter().filter(|line| !line.is_empty()).cloned().collect();
    vec![
        ("cat", show(lines, |_, text| text.to_owned())),
        ("read_file", show(lines, |at, text| format!("L{at}: {text}"))),
        ("read_file, trimmed", show(lines, |at, text| format!("L{at}: {text}").trim_end().to_owned())),
        ("git diff", show(lines, |_, text| format!("+{text}"))),
        ("git diff in colours", show(lines, |_, text| format!("\x1b[32m+\x1b[m\x1b[32m{text}\x1b[m"))),
        ("grep -r", show(&full, |_, text| format!("k.pem:{text}"))),
        ("grep -rn, deep", show(&full, |at, text| format!("{path}:{at}:{text}"))),
        ("grep -n -A", show(lines, |at, text| format!("{at}{}{text}", if at == 1 { ':' } else { '-' }))),
        ("cat -n", show(lines, |at, text| format!("{at:6}\t{text}"))),
        ("sed =", show(lines, |at, text| format!("{at}\n{text}"))),
        ("sed G", show(lines, |_, text| format!("{text}\n"))),
        ("sed = | sed G", show(lines, |at, text| format!("{at}\n\n{text}\n"))),
    ]
}

#[track_caller]
fn assert_hidden(way: &str, text: &str, lines: &[String]) {
    let cleaned = Secrets::default().clean(text).into_owned();
    let is_data = |line: &&String| !line.starts_with('-') && !line.contains(':') && line.len() > 4;
    let seen: Vec<_> =
        lines.iter().filter(is_data).filter(|line| cleaned.contains(&line[..line.len().min(8)])).collect();
    assert!(seen.is_empty() && cleaned.contains("[REDACTED:private-key#1]"), "{way}: {seen:?}\n{cleaned}");
}

#[test]
fn a_titled_key_is_hidden_however_its_lines_are_shown() {
    for key in [openpgp(), with_passphrase(), openssh()] {
        for (way, text) in shown(&key) {
            assert_hidden(way, &format!("$ show\n{text}"), &key);
            let after = format!("{text}$ ls\nREADME\n");
            assert!(Secrets::default().clean(&after).ends_with("$ ls\nREADME\n"), "{way}");
        }
    }
}

#[test]
fn a_key_has_one_label_however_it_is_shown() {
    let secrets = Secrets::default();
    for (way, text) in shown(&openssh()) {
        let cleaned = secrets.clean(&text).into_owned();
        assert!(
            way.contains("sed") || cleaned.matches("[REDACTED:private-key#1]").count() == 1,
            "{way}\n{cleaned}"
        );
    }
}

#[test]
fn the_end_of_a_key_hides_lines_with_a_name_in_front() {
    let key = openssh();
    let ways = shown(&key);
    for (way, text) in ways.iter().filter(|(way, _)| !way.contains("sed")) {
        let lines: Vec<_> = text.lines().collect();
        assert_hidden(way, &lines[lines.len() - 5..].join("\n"), &key[key.len() - 5..]);
    }
}

#[test]
fn the_first_lines_of_a_key_are_known_with_anything_in_front() {
    for key in [openpgp(), openssh()] {
        let from = key.iter().position(|line| line.len() == 64).unwrap_or_default();
        let part = &key[from..from + 5];
        for (way, text) in shown(part).iter().filter(|(way, _)| !way.contains("sed")) {
            assert_hidden(way, text, part);
        }
    }
}

#[test]
fn what_is_public_stays_however_it_is_shown() {
    for (title, head) in [
        ("CERTIFICATE", "MIIDdzCCAl+gAwIBAgIE"),
        ("PUBLIC KEY", "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"),
        ("PGP PUBLIC KEY BLOCK", "mQENBGr69KYBCADDbt1F"),
        ("PGP SIGNATURE", "iQEzBAABCAAdFiEE"),
        ("PGP MESSAGE", "hQEMA"),
    ] {
        for (way, text) in shown(&file(title, &["Version: 1", ""], &data(head))) {
            assert_eq!(Secrets::default().clean(&text), text, "{title}: {way}");
        }
    }
}

#[test]
fn what_follows_a_key_that_was_cut_off_stays() {
    let head = show(&openssh()[..5], |_, text| text.to_owned());
    for after in ["$ wc -l key\n27 key\n", "27\nREADME\n", "\nMakefile\nLICENSE\n", "12\n13\n14\n15\n"] {
        let cleaned = Secrets::default().clean(&format!("{head}{after}")).into_owned();
        assert!(
            after.lines().all(|line| cleaned.lines().any(|each| each == line) || line.is_empty()),
            "{cleaned}"
        );
    }
}

#[test]
fn a_line_of_the_middle_behind_a_long_name_is_passed_once() {
    let line = format!("{}AgMBAAECgg{}", &ALPHABET[..20], &ALPHABET[..34]);
    for before in ["k.pem:".to_owned(), "my-own.keys_".repeat(6) + "k.pem:", "my-own.keys_".repeat(12) + ":"]
    {
        let text = format!("{before}{line}\n$ ls\n");
        assert!(Secrets::default().clean(&text).ends_with("\n$ ls\n"), "{before}");
    }
}

#[test]
fn a_first_line_among_other_words_is_passed_once() {
    let text = format!(
        "{} is how {} begins, as anyone who has exported one will know\n",
        data("lQOYBGr6")[0],
        "a key ".repeat(20)
    );
    assert_eq!(Secrets::default().clean(&text), text);
}

/// Logs of other programs among the lines of a key, as where two write to one terminal.
#[test]
fn a_key_is_hidden_between_lines_of_something_else_and_those_stay() {
    const LOG: &str = "2026-05-11T08:22:41.101Z INFO  http: GET /health 200 3ms\n";
    for (key, every) in [openpgp(), with_passphrase(), openssh()].iter().flat_map(|key| [(key, 1), (key, 3)])
    {
        let among = |line: fn(&str) -> String, log: &str| {
            let logs = |at: usize| log.repeat(usize::from(at.is_multiple_of(every)) * 2);
            key.iter().enumerate().map(|(at, text)| line(text) + "\n" + &logs(at)).collect::<String>()
        };
        let journal = |text: &str| format!("May 11 08:22:41 host app[91]: {text}");
        for text in
            [among(str::to_owned, LOG), among(journal, "May 11 08:22:41 host sshd[7]: Accepted key\n")]
        {
            let cleaned = Secrets::default().clean(&text).into_owned();
            let logs = |text: &str| text.matches("08:22:41.101Z").count() + text.matches("Accepted").count();
            assert_eq!(logs(&cleaned), logs(&text));
            assert_hidden("among others", &text, key);
        }
    }
}

#[test]
fn a_certificate_and_other_random_lines_behind_a_key_that_was_cut_off_stay() {
    let key = openssh();
    let certificate = file("CERTIFICATE", &[], &data("MIIDazCCAlOgAwIBAgIU")).join("\n");
    let hash = "4f1d2c3b4a594f1d2c3b4a594f1d2c3b4a594f1d2c3b4a594f1d2c3b4a591234";
    for after in
        [certificate, format!("done\n{hash}\nsrc/Components/UserProfile/index\n"), "$ ls\nREADME\n".into()]
    {
        let text = format!("{}\n{after}\n", key[..6].join("\n"));
        let cleaned = Secrets::default().clean(&text).into_owned();
        assert!(cleaned.ends_with(&format!("[REDACTED:private-key#1]\n{after}\n")), "{cleaned}");
    }
}

/// Text that docker and tables append to each line also follows the title.
#[test]
fn a_key_is_hidden_with_something_behind_each_line() {
    for key in [openpgp(), openssh()] {
        let full: Vec<_> = key.iter().filter(|line| !line.is_empty()).cloned().collect();
        let log = |text: &str| {
            format!(r#"{{"log":"{text}\n","stream":"stdout","time":"2026-05-11T08:22:41.101Z"}}"#)
        };
        assert_hidden("docker", &show(&full, |_, text| log(text)), &key);
        assert_hidden("table", &show(&full, |_, text| format!("| {text:70} |")), &key);
    }
}

/// In the bare form of a key of 4096 bits, the exponent is at the end of a line and at the
/// beginning of the next.
#[test]
fn the_middle_of_a_key_is_known_also_where_a_line_ends_in_it() {
    let mut lines = data("vAyx")[..14].to_vec();
    let line = &lines[4][..59];
    lines[4] = format!("{line}CAwEA");
    let certificate = show(&lines, |_, text| text.to_owned());
    assert_eq!(Secrets::default().clean(&certificate), certificate);
    lines[5] = format!("AQKCAg{}", &lines[5][6..]);
    assert_hidden("sed -n 6,40p", &show(&lines, |_, text| text.to_owned()), &lines);
    lines[4] = data("vAyx")[4].clone();
    let other = show(&lines, |_, text| text.to_owned());
    assert_eq!(Secrets::default().clean(&other), other);
}

/// Code, messages and what was cleaned before: whatever follows it in its line, a title alone hides
/// nothing.
#[test]
fn what_follows_the_mention_of_a_title_stays() {
    let sum = "9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de";
    let frame = format!("Checksum: {sum}\n    at Object.parsePrivateKeyFromFileSystem (pem.js:12)");
    for (mention, next) in [
        (r#"if (!pem.includes("-----BEGIN PRIVATE KEY-----")) {"#, "    throwInvalidArgumentException();"),
        (
            r#"assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----"));"#,
            "    assertEncodedKeyIsReadable(pem);",
        ),
        (r#"12: expected "-----BEGIN PRIVATE KEY-----", got "x""#, "Error: invalidCertificateFormat"),
        (r#"expected "-----BEGIN PRIVATE KEY-----", got "x""#, &frame),
        (r#"expected "-----BEGIN PRIVATE KEY-----", got "x""#, &sum.to_uppercase()),
        (r#"if pem.find("-----BEGIN PRIVATE KEY-----") < 0:"#, "    raise InvalidPrivateKeyError"),
        (
            r#"if pem.find("-----BEGIN PRIVATE KEY-----") < 0:"#,
            "    die(\"lookForTheEnd: -----END PRIVATE KEY-----\")",
        ),
        (
            r#""PrivateKey": "-----BEGIN RSA PRIVATE KEY-----<long>-----END RSA PRIVATE KEY-----","#,
            r#""ServerCertificateName": "ProdServerCert""#,
        ),
        (
            r#"key = "-----BEGIN PRIVATE KEY-----[REDACTED:private-key#1]-----END PRIVATE KEY-----""#,
            "enableAutomaticMigration = true\nvalidateServerCertificate()",
        ),
        ("key = -----BEGIN PRIVATE KEY-----[REDACTED:private-key#1]", "enableAutomaticMigration = true"),
        ("A file starts with -----BEGIN PRIVATE KEY----- and then", "containsTheEncodedInformation: yes"),
        (
            "grep -l '-----BEGIN OPENSSH PRIVATE KEY-----' -r .",
            "./deployments/production/backup/server-signing",
        ),
        ("| `-----BEGIN EC PRIVATE KEY-----` | PKCS#1 |", "| ImplementationDependentEncoding | x |"),
    ] {
        let text = format!("{mention}\n{next}\nlast\n");
        assert_eq!(Secrets::default().clean(&text), text);
    }
}

#[test]
fn a_key_in_a_string_has_one_label_and_what_follows_it_stays_however_often_it_is_cleaned() {
    let text = format!(
        "key = \"{}\"\nenableAutomaticMigration = true\nvalidateServerCertificate()\n",
        openssh().join("\\n")
    );
    let secrets = Secrets::default();
    let once = secrets.clean(&text).into_owned();
    assert!(once.ends_with("\"\nenableAutomaticMigration = true\nvalidateServerCertificate()\n"), "{once}");
    assert_eq!(secrets.clean(&once), once);
}

#[test]
fn a_key_that_was_encoded_again_is_gone_with_all_its_lines() {
    let wrapped = |text: &str, width: usize| -> Vec<String> {
        let encoded = STANDARD.encode(text);
        encoded.as_bytes().chunks(width).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
    };
    let text = |title: &str| file(title, &[], &data("MIIEpAIBAAKCAQEA")).join("\n") + "\n";
    for (width, title) in [(76, "RSA PRIVATE KEY"), (64, "OPENSSH PRIVATE KEY"), (76, "PRIVATE KEY")] {
        let lines = wrapped(&text(title), width);
        let cleaned =
            Secrets::default().clean(&format!("before\n{}\nafter\n", lines.join("\n"))).into_owned();
        assert_eq!(cleaned, "before\n[REDACTED:private-key#1]\nafter\n", "{width} {title}");
    }
    let public = wrapped(&text("CERTIFICATE").replace("MIIEpAIBAAKCAQEA", "MIIDdzCCAl+gAwIB"), 76).join("\n");
    assert_eq!(Secrets::default().clean(&public), public);
}

#[test]
fn what_only_began_like_a_key_does_not_take_everything_along() {
    let line = |turn: usize| format!("{}{}", &ALPHABET[turn % 16..], &ALPHABET[..24 + turn % 16]);
    let lines: Vec<_> = (0..2000).map(line).collect();
    for first in [format!("lHcE{}", &lines[0][4..]), "-----BEGIN PRIVATE KEY-----".to_owned()] {
        let text = format!("{first}\n{}\nthe end\n", lines.join("\n"));
        let cleaned = Secrets::default().clean(&text).into_owned();
        assert!(cleaned.ends_with("\nthe end\n"));
        let left = cleaned.lines().count();
        assert!((1400..=1404).contains(&left), "{left}");
    }
}
