//! Labelled cases: what must be hidden, and what only looks as if.

#[path = "cases/drawn.rs"]
mod drawn;

use windlass_shape::{Cleaner, Secrets};

use self::drawn::{Case, Random, drawn};

fn cases(file: &str) -> Vec<Case> {
    drawn(file, 0)
}

/// Returns true if a run of the secret is left: a quarter of it, at least 6 and at most 12
/// characters.
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

/// Number of times that the values of each text are generated.
const DRAWS: usize = 8;

fn all_draws(file: &str) -> Vec<Case> {
    (0..DRAWS).flat_map(|draw| drawn(file, draw)).collect()
}

/// Counts the secrets that are left in the cases of a file, and all of them.
fn left(file: &str) -> (usize, usize) {
    all_draws(file).iter().fold((0, 0), |(left, all), case| {
        let cleaned = Secrets::default().clean(&case.text);
        let here = case.secrets.iter().filter(|secret| is_left(secret, &cleaned)).count();
        (left + here, all + case.secrets.len())
    })
}

/// Counts the cases of a file that are changed, and all of them.
fn touched(file: &str) -> (usize, usize) {
    let cases = all_draws(file);
    let is_touched = |case: &&Case| Secrets::default().clean(&case.text) != case.text;
    (cases.iter().filter(is_touched).count(), cases.len())
}

#[test]
fn few_secrets_are_left_in_texts_that_no_rule_was_written_for() {
    let (left, all) = left(include_str!("cases/unseen-secrets.txt"));
    assert!(left * 100 <= all * 3, "{left} of {all}");
}

#[test]
fn few_look_alikes_are_touched_in_texts_that_no_rule_was_written_for() {
    let (touched, all) = touched(include_str!("cases/unseen-look-alikes.txt"));
    assert!(touched * 100 <= all, "{touched} of {all}");
}

#[test]
fn what_was_learnt_from_a_second_set_is_not_forgotten() {
    let (left, all) = left(include_str!("cases/second-secrets.txt"));
    assert!(left * 100 <= all * 2, "{left} of {all}");
    let (touched, all) = touched(include_str!("cases/second-look-alikes.txt"));
    assert_eq!(touched, 0, "of {all}");
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
