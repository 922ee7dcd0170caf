//! Behaviour of the cleaner as a whole.

use super::*;

const FORTY: &str = "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A";

fn github() -> String {
    format!("{}{}", "ghp_", &FORTY[..36])
}

fn in_pieces(secrets: &Secrets, text: &[u8], cuts: &[usize]) -> Vec<u8> {
    let mut cleaner = Cleaner::new(secrets);
    let (mut out, mut rest) = (Vec::new(), text);
    for cut in cuts.iter().cycle() {
        if rest.is_empty() || cuts.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*cut).clamp(1, rest.len()));
        out.extend(cleaner.push(piece));
        rest = after;
    }
    out.extend(cleaner.push(rest));
    out.extend(cleaner.finish());
    out
}

#[test]
fn the_same_secret_has_the_same_label_wherever_it_is() {
    let secrets = Secrets::default();
    let token = github();
    let text = format!("a {token}\nGITHUB_TOKEN={token}\npassword: hunter2x\n");
    let cleaned = "a [REDACTED:github-token#1]\nGITHUB_TOKEN=[REDACTED:github-token#1]\npassword: [REDACTED:password#2]\n";
    assert_eq!(secrets.clean(&text), cleaned);
    assert_eq!(secrets.clean(&token), "[REDACTED:github-token#1]");
}

#[test]
fn an_end_in_a_line_that_is_held_back_finds_what_is_above_it() {
    let body = format!("{FORTY}{}", &FORTY[..24]);
    let text = format!("{body}\nx-----END RSA PRIVATE KEY-----password{body}\nlast line\n");
    let whole = in_pieces(&Secrets::default(), text.as_bytes(), &[]);
    assert!(!whole.starts_with(body.as_bytes()));
    for cut in 1..text.len() {
        assert_eq!(in_pieces(&Secrets::default(), text.as_bytes(), &[cut, text.len()]), whole, "{cut}");
    }
}

#[test]
fn a_middle_of_a_key_behind_a_title_in_its_line_is_passed() {
    let title = "-----BEGIN RSA PRIVATE KEY-----";
    let text = format!("{title}\x1b[32mAgMBAAECggEA{FORTY}{}\n\x1b[m\nlast\n", &FORTY[..24]);
    assert!(Secrets::default().clean(&text).ends_with("last\n"));
}

#[test]
fn known_values_are_hidden_in_every_encoding_with_one_label() {
    let secrets = Secrets::knowing([("DB_PASSWORD".to_owned(), "pl/um\"tree42".to_owned())]);
    let text = r#"pl/um"tree42 pl%2Fum%22tree42 pl/um\"tree42 cGwvdW0idHJlZTQy"#;
    let label = "[REDACTED:DB_PASSWORD#1]";
    let cleaned = secrets.clean(text);
    assert!(cleaned.starts_with(&format!("{label} {label} {label} {label}")), "{cleaned}");
}

#[test]
fn a_known_value_of_several_words_or_lines_is_hidden() {
    let known = [
        ("DB_PASSWORD", "corn q7 battery z2"),
        ("APP_TOKEN", "a1b2c3\nd4e5f6g7h8\ni9j0"),
        ("NOTE", "some plain words"),
    ];
    let secrets = Secrets::knowing(known.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let clean = |text: &str| secrets.clean(text).into_owned();
    assert_eq!(clean("make 'corn q7 battery z2'"), "make '[REDACTED:DB_PASSWORD#1]'");
    assert_eq!(clean("corn battery"), "corn battery");
    let line = serde_json::json!({"command": "make 'a1b2c3\nd4e5f6g7h8\ni9j0'"}).to_string();
    assert_eq!(clean(&line), r#"{"command":"make '[REDACTED:APP_TOKEN#2]'"}"#);
    assert_eq!(clean("some plain words"), "some plain words");
}

#[test]
fn a_key_without_its_end_is_hidden_and_what_follows_stays() {
    let body = FORTY.repeat(2);
    let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}\n$ ls -la\nkey.pem\n");
    let cleaned = "-----BEGIN RSA PRIVATE KEY-----\n[REDACTED:private-key#1]\n$ ls -la\nkey.pem\n";
    assert_eq!(Secrets::default().clean(&text), cleaned);
}

/// Lines as they are in a key of RSA, without titles.
fn lines_of_a_key() -> String {
    let line = |turn: usize| format!("{}{}", &FORTY[turn..], &FORTY[..24 + turn]);
    let lines: Vec<_> = (0..9).map(line).chain(["Wd1Ye6Uf3Ig5Oh8Jn2=".to_owned()]).collect();
    lines.join("\n")
}

#[test]
fn an_end_without_a_beginning_hides_the_lines_above_it() {
    let body = lines_of_a_key();
    let lines: Vec<_> = body.lines().collect();
    for from in 0..lines.len() {
        let text = format!("$ tail key.pem\n{}\n-----END RSA PRIVATE KEY-----\n", lines[from..].join("\n"));
        let cleaned = "$ tail key.pem\n[REDACTED:private-key#1]\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(Secrets::default().clean(&text), cleaned);
        assert_eq!(in_pieces(&Secrets::default(), text.as_bytes(), &[1]), cleaned.as_bytes());
        let numbered: String =
            text.lines().enumerate().map(|(at, line)| format!("{:6}\t{line}\n", at + 7)).collect();
        let cleaned = Secrets::default().clean(&numbered).into_owned();
        assert!(!lines[from..].iter().any(|line| cleaned.contains(&line[..12])), "{cleaned}");
    }
    let spelled = format!("\"{}\\n-----END PRIVATE KEY-----\\n\"", lines.join("\\n"));
    assert_eq!(
        Secrets::default().clean(&spelled),
        "\"[REDACTED:private-key#1]-----END PRIVATE KEY-----\\n\""
    );
}

#[test]
fn lines_above_the_end_of_something_public_stay() {
    let body = lines_of_a_key();
    for end in ["CERTIFICATE", "PUBLIC KEY", "PGP SIGNATURE", "CERTIFICATE REQUEST"] {
        let text = format!("{body}\n-----END {end}-----\n{body}\n");
        assert_eq!(Secrets::default().clean(&text), text);
    }
    let image = format!("{body}\n").repeat(400);
    assert_eq!(in_pieces(&Secrets::default(), image.as_bytes(), &[4096]), image.as_bytes());
    let apart = format!("{body}\n\n-----END PRIVATE KEY-----\n");
    assert_eq!(Secrets::default().clean(&apart), apart);
}

#[test]
fn a_key_without_its_title_is_known_by_its_first_line() {
    let body = lines_of_a_key();
    for head in
        ["MIIEpAIBAAKCAQEA", "MIIJQwIBADANBgkqhkiG9w0BAQEFAASC", "b3BlbnNzaC1rZXktdjEAAAAABG5v", "MHcCAQEEIF"]
    {
        let first = format!("{head}{}", &FORTY.repeat(2)[..64 - head.len()]);
        let text = format!("$ sed -n 2,9p key\n{first}\n{body}\n$ ls\n");
        assert_eq!(Secrets::default().clean(&text), "$ sed -n 2,9p key\n[REDACTED:private-key#1]\n$ ls\n");
    }
    let public = format!("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA{}\n{body}\n", &FORTY[..20]);
    assert_eq!(Secrets::default().clean(&public), public);
}

#[test]
fn the_middle_of_an_rsa_key_is_known_by_the_exponent_in_it() {
    let body = lines_of_a_key();
    let lines: Vec<_> = body.lines().collect();
    for mark in ["AgMBAAECggEA", "wIDAQABAoIB", "QCAwEAAQKCAg"] {
        let marked = format!("{}{mark}{}", &FORTY[..20], &FORTY[..44 - mark.len()]);
        let text = format!("$ sed -n 4,9p key\n{}\n{marked}\n{}\n$ ls\n", lines[..3].join("\n"), lines[4]);
        let cleaned = "$ sed -n 4,9p key\n[REDACTED:private-key#1]\n$ ls\n";
        assert_eq!(Secrets::default().clean(&text), cleaned);
        assert_eq!(in_pieces(&Secrets::default(), text.as_bytes(), &[1]), cleaned.as_bytes());
    }
    let last_of_a_public_key = format!("{}\n{}AgMBAAE=\n", lines[0], &FORTY[..20]);
    assert_eq!(Secrets::default().clean(&last_of_a_public_key), last_of_a_public_key);
}

#[test]
fn lines_that_may_be_of_a_key_are_kept_back_in_bounded_memory() {
    let mut cleaner = Cleaner::new(&Secrets::default());
    let line = format!("{}\n", &FORTY.repeat(2)[..64]);
    for _ in 0..4000 {
        cleaner.push(line.as_bytes());
        assert!(cleaner.rest.len() <= WINDOW_BYTES);
    }
}

#[test]
fn findings_say_where_and_why_but_not_what() {
    let token = github();
    let mut cleaner = Cleaner::new(&Secrets::default()).reporting();
    cleaner.push(format!("one\ntwo {token} and\nDB_PASS").as_bytes());
    cleaner.push(b"WORD=q8Zk2mPv0Lr7\n");
    let findings = cleaner.findings();
    let places: Vec<_> = findings.iter().map(|each| (each.line, each.column, each.rule.as_str())).collect();
    assert_eq!(places, [(2, 5, "github-token"), (3, 13, "password")]);
    assert!(!format!("{findings:?}").contains(&token[4..12]));
}

#[test]
fn a_line_without_end_is_cleaned_in_bounded_memory() {
    let secrets = Secrets::default();
    let mut cleaner = Cleaner::new(&secrets);
    let token = github();
    let (mut out, mut count) = (Vec::new(), 0);
    for _ in 0..40 {
        // Places in every part of a window.
        let filler = "lorem ".repeat(1234 + count % 7);
        out.extend(cleaner.push(format!("{filler}{token} ").as_bytes()));
        count += 1;
        assert!(cleaner.rest.len() <= WINDOW_BYTES + AHEAD_BYTES);
    }
    out.extend(cleaner.finish());
    let text = String::from_utf8(out).unwrap();
    assert_eq!((text.matches("#1]").count(), text.contains(&token)), (count, false));
}

/// A known value and a matcher that stops after so many bytes, within a character, find the same
/// place.
#[test]
fn what_two_find_ends_with_a_character() {
    let secrets = Secrets::knowing([("KNOWN".to_owned(), "Kn0wn-q8Zk2m".to_owned())]);
    let text =
        format!("credentials: a/Kn0wn-q8Zk2m{}0é\n", "MHcCAQEEIFq8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A");
    assert_eq!(secrets.clean(&text), "credentials: a/[REDACTED:KNOWN#1]\n");
}

#[test]
fn a_line_that_comes_again_is_cleaned_as_it_was() {
    let (token, body) = (github(), format!("{FORTY}{}", &FORTY[..24]));
    let unit = format!(
        "password: hunter2x\npassword:\n{FORTY}\n{FORTY}\na={token},b={token}\nthe token is not here\n\
         a={token} b={token} c={token}\n-----BEGIN RSA PRIVATE KEY-----\n{body}\npassword: hunter2x\n\
         x-----END RSA PRIVATE KEY-----password: hunter2x\n"
    );
    let secrets = Secrets::default();
    let once = secrets.clean(&unit).into_owned();
    assert!(!once.contains("hunter2x") && !once.contains(&token) && once.contains("not here"), "{once}");
    assert_eq!(secrets.clean(&unit.repeat(1000)), once.repeat(1000));
}

#[test]
fn bytes_that_are_no_text_pass() {
    let bytes = [&b"\0\xff\xfe token=\xf0\x9f\n"[..], &[0xc3; 100], b"\n"].concat();
    assert_eq!(in_pieces(&Secrets::default(), &bytes, &[3]), bytes);
}

#[test]
fn wide_text_is_cleaned_like_any_and_stays_wide() {
    let body = lines_of_a_key();
    let text = format!(
        "# notes\r\nGITHUB_TOKEN={token}\r\nü password: hunter2x\r\n\r\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n{filler} {token}",
        token = github(),
        filler = "lorem ".repeat(20_000),
    );
    let cleaned = Secrets::default().clean(&text).into_owned();
    assert_eq!(cleaned.matches("[REDACTED:").count(), 4);
    let orders: [fn(u16) -> [u8; 2]; 2] = [u16::to_le_bytes, u16::to_be_bytes];
    for (order, cut) in orders.into_iter().flat_map(|order| [(order, 997), (order, 4096), (order, 1 << 20)]) {
        let wide = |text: &str| text.encode_utf16().flat_map(order).collect::<Vec<_>>();
        assert!(in_pieces(&Secrets::default(), &wide(&text), &[cut]) == wide(&cleaned), "in pieces of {cut}");
    }
}
