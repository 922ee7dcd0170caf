//! Input made to hurt: bounded memory, bounded output, and work that grows with the input and not
//! with its square. A test here that never ends is how the last of these fails.

use windlass_contract::{Output, meta::Format, outcome::Receipt, verdict::Criteria};
use windlass_shape::{Budget, Cleaner, Secrets, Shaper, Terminal};

const BYTES: usize = 200_000;

/// A text of so many bytes that is nothing but this.
fn only(text: &str) -> String {
    text.repeat(BYTES / text.len())
}

#[test]
fn one_line_of_nothing_but_beginnings_is_read_once() {
    let beginnings = [
        "password ",
        "password=",
        "password='",
        "token: \"",
        "secret|",
        "key key ",
        "://",
        "://a:b@",
        "cookie: a=b;",
        "eyJ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "Private-Lines: 0",
        "sk-",
        "ghp_",
        "curl -u ",
        "mysql -p",
        "| docker login --password-stdin ",
        "echo |chpasswd",
        "\"d\":\"",
        "name: PASSWORD value ",
        "authorization: bearer ",
        "discord ",
        ":5432:",
        "basic ",
        "\\\\\\\\\"",
        "jdbc:oracle:thin:",
        "securestring",
        "!!str ",
        "sudo -S <<<",
        "\0",
        "é",
        "[]byte(",
        "(((((((",
        "cookie: ",
        "eyJ-",
        "eyJ--",
        "figd_",
        "tskey-",
        "chpasswd|",
        "docker.io ",
        "Cookie: a b;",
        "cookie: a b c ",
        "MIIEpAIBAAKCAQEA",
        "MIIEpAIBAAKCAQEA ",
        "b3BlbnNzaC1rZXktdjEA",
        "AgMBAAECgg",
        "IDAQABAoI",
        "CAwEAAQKC",
    ];
    for beginning in beginnings {
        let cleaned = Secrets::default().clean(&only(beginning)).len();
        assert!(cleaned < 4 * BYTES, "{beginning}: {cleaned}");
    }
}

#[test]
fn a_terminal_bomb_is_no_longer_than_it_was() {
    let bombs = [
        "\u{1b}[999999999b",
        "x\u{1b}[99999999b",
        "\u{1b}[99999999;99999999Hx",
        "\u{1b}[99999999L",
        "\u{1b}[99999999@x",
        "\u{1b}[99999999S",
        "\u{1b}[99999999E",
        "\u{1b}]0;",
        "\u{1b}P",
        "\u{1b}[;;;;;;;;;;;;",
        "\u{8}\u{8}x",
        "\r\u{1b}[K",
        "\u{1b}[?1049h",
        "\u{1b}7\u{1b}8",
        "\t",
    ];
    for bomb in bombs {
        let reduced = Terminal::reduce(&only(bomb)).len();
        assert!(reduced <= 8 * BYTES, "{bomb:?}: {reduced}");
    }
}

#[test]
fn deep_data_and_text_are_shaped_within_the_budget() {
    let mut data = serde_json::json!("DB_PASSWORD=q8Zk2mPv0Lr7");
    for _ in 0..120 {
        data = serde_json::json!([data]);
    }
    let deep = "[".repeat(BYTES) + &"]".repeat(BYTES);
    let shaper = Shaper { budget: Budget::Bytes(1000), ..Shaper::default() };
    let output = Output { data: Some(data.into()), ..Output::from(deep) };
    let outcome = shaper.shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
    assert!(outcome.text().len() < 1100);
    assert!(!serde_json::json!(outcome.data).to_string().contains("q8Zk2m"));
}

#[test]
fn bytes_that_are_no_text_come_through_in_pieces_of_any_size() {
    let bytes: Vec<u8> = (0..BYTES / 4).map(|at| [0, 0xff, 0xc3, 0xf0, b'a', b'\n'][at % 6]).collect();
    for size in [1, 3, 4096, 100_000] {
        let (mut cleaner, mut out) = (Cleaner::new(&Secrets::default()), Vec::new());
        bytes.chunks(size).for_each(|piece| cleaner.push_to(piece, &mut out));
        out.extend(cleaner.finish());
        assert!(out == bytes, "in pieces of {size}");
    }
}
