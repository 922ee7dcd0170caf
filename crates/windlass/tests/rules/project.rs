//! The project that requests are about: Rust and Python, a failing test, some history, Chinese
//! names.

use std::{fs, path::Path, process::Command};

const FILES: &[(&str, &str)] = &[
    (".gitignore", "/target\n*.log\n"),
    (
        "Cargo.toml",
        "[package]\nname = \"till\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n\n[workspace]\n",
    ),
    ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"till\"\nversion = \"0.1.0\"\n"),
    ("README.md", "# Till\n\nA small till for small shops.\n\n## Use\n\nRun `cargo run`.\n"),
    ("config.toml", "currency = \"EUR\"\nshop = \"corner\"\n"),
    ("src/lib.rs", "//! A till.\n\npub mod cart;\npub mod price;\n"),
    (
        "src/main.rs",
        r#"//! The till's command line.

use till::{cart::Cart, price};

fn main() {
    let mut cart = Cart::new();
    cart.add("apple", price::cents("1.20"));
    cart.add("pear", price::cents("0.80"));
    println!("total: {}", cart.total());
    // TODO: read the items from a file
}
"#,
    ),
    (
        "src/cart.rs",
        r#"//! What a customer buys.

/// Items and what they cost, in cents.
#[derive(Debug, Default)]
pub struct Cart {
    items: Vec<(String, u64)>,
}

impl Cart {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an item into the cart.
    pub fn add(&mut self, name: &str, cents: u64) {
        // TODO: refuse names that are empty
        self.items.push((name.to_owned(), cents));
    }

    pub fn total(&self) -> u64 {
        self.items.iter().map(|(_, cents)| cents).sum()
    }

    pub fn discount(&self, percent: u64) -> u64 {
        // FIXME: rounds the wrong way
        self.total() * percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_sum() {
        let mut cart = Cart::new();
        cart.add("apple", 120);
        cart.add("pear", 80);
        assert_eq!(cart.total(), 200);
    }

    #[test]
    fn a_discount_is_rounded_up() {
        let mut cart = Cart::new();
        cart.add("apple", 125);
        assert_eq!(cart.discount(10), 13);
    }
}
"#,
    ),
    (
        "src/price.rs",
        r#"//! Prices as people write them.

/// Turns `1.20` into 120.
pub fn cents(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    whole.parse::<u64>().unwrap_or(0) * 100 + part.parse::<u64>().unwrap_or(0)
}

pub fn show(cents: u64) -> String {
    format!("{}.{}", cents / 100, cents % 100)
}
"#,
    ),
    (
        "tests/shop.rs",
        "//! The till as a shop uses it.\n\n#[test]\nfn prices_are_shown() {\n    assert_eq!(till::price::show(120), \"1.20\");\n}\n",
    ),
    (
        "scripts/report.py",
        r#""""Prints what was sold."""

import csv


def load(path):
    with open(path) as file:
        return list(csv.reader(file))


def total(rows):
    # TODO: skip the header
    return sum(int(row[1]) for row in rows)


def main():
    print(total(load("data/sales.csv")))


if __name__ == "__main__":
    main()
"#,
    ),
    (
        "scripts/clean.py",
        "\"\"\"Removes what is not needed.\"\"\"\n\n\ndef clean(rows):\n    return [row for row in rows if row]\n",
    ),
    (
        "scripts/config.py",
        "\"\"\"Settings.\"\"\"\n\nPATH = \"data/sales.csv\"\nLIMIT = 100\nVERBOSE = False\n",
    ),
    ("notes.txt", "buy paper\ncall the bank\n"),
    ("old_notes.txt", "buy paper\ncall the dentist\n"),
    ("docs/使用说明.md", "# 使用说明\n\n先运行 cargo run。\n"),
    ("数据/价格.csv", "苹果,120\n梨,80\n"),
];

/// Makes the project in an empty directory.
pub(crate) fn make(place: &Path) {
    for (path, content) in FILES {
        write(place, path, content);
    }
    let sales: String = (1..=300).map(|number| format!("item{number},{}\n", number * 10)).collect();
    write(place, "data/sales.csv", &sales);
    git(place, "", "", &["init", "--quiet", "--initial-branch=main"]);
    commit(place, "Alice", "2026-01-05", "start the till");
    let price = FILES.iter().find(|(path, _)| *path == "src/price.rs").unwrap().1;
    write(place, "src/price.rs", &price.replace("{}.{}", "{}.{:02}"));
    commit(place, "Bob", "2026-02-10", "round prices");
    git(place, "Bob", "2026-02-10", &["tag", "v1.0"]);
    write(place, "docs/guide.md", "# Guide\n\nScan, pay, leave.\n");
    commit(place, "Alice", "2026-03-01", "add a guide");
    write(place, "notes.txt", "buy paper\ncall the bank\nfix the printer\n");
    write(place, "scratch.txt", "temporary\n");
    write(place, "build.log", "TODO of a log that is ignored\n");
}

fn write(place: &Path, path: &str, content: &str) {
    let path = place.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn commit(place: &Path, who: &str, day: &str, what: &str) {
    git(place, who, day, &["add", "--all"]);
    git(place, who, day, &["commit", "--quiet", "--message", what]);
}

fn git(place: &Path, who: &str, day: &str, arguments: &[&str]) {
    let date = format!("{day}T12:00:00+0000");
    let ended = Command::new("git")
        .args(arguments)
        .current_dir(place)
        .envs([("GIT_AUTHOR_NAME", who), ("GIT_COMMITTER_NAME", who)])
        .envs([("GIT_AUTHOR_EMAIL", "till@example.com"), ("GIT_COMMITTER_EMAIL", "till@example.com")])
        .envs([("GIT_AUTHOR_DATE", date.as_str()), ("GIT_COMMITTER_DATE", date.as_str())])
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")])
        .status();
    assert!(ended.unwrap().success(), "git {arguments:?}");
}
