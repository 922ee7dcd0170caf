//! Labelled cases: what must be hidden, and what only looks as if.

#[path = "cases/drawn.rs"]
mod drawn;

use windlass_shape::{Cleaner, Secrets};

use self::drawn::{Case, Random, drawn};

fn cases(file: &str) -> Vec<Case> {
    drawn(file, 0)
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

#[test]
fn what_is_cleaned_has_nothing_left_to_clean() {
    let files = [
        include_str!("cases/secrets.txt"),
        include_str!("cases/more-secrets.txt"),
        include_str!("cases/unseen-secrets.txt"),
        include_str!("cases/look-alikes.txt"),
    ];
    let cases = files.iter().flat_map(|file| cases(file));
    let again: Vec<_> = cases
        .filter_map(|case| {
            let cleaned = Secrets::default().clean(&case.text).into_owned();
            let twice = Secrets::default().clean(&cleaned).into_owned();
            (twice != cleaned).then(|| format!("{cleaned}  -> {twice}"))
        })
        .collect();
    assert!(again.is_empty(), "{} cleaned twice:\n{}", again.len(), again.join(""));
}
