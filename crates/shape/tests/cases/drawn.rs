//! Labelled cases made into texts: each template with values drawn at random, the same in every
//! run.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read fails the test")]

/// A text with its secrets, and the pieces of each that must not be left.
pub(crate) struct Case {
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

/// Numbers that are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
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

/// The cases of a file, with other values in each draw.
pub(crate) fn drawn(file: &str, draw: usize) -> Vec<Case> {
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
