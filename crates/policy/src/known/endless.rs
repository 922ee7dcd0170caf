//! Commands that would print, compute or pad without a reasonable end.

use super::grammar::SortedArguments;

/// Maximum number of digits of a count of printed lines or bytes.
const MAX_DIGITS: usize = 7;

/// Maximum number of digits of a width that a text is padded to.
const MAX_WIDTH_DIGITS: usize = 4;

/// Returns an error that says why a command may run forever. `name` is the one in the table.
pub(super) fn check(name: &str, arguments: &SortedArguments<'_>) -> Result<(), String> {
    let texts = || arguments.operands.iter().map(|word| word.text.as_str());
    let values = arguments.options.iter().filter_map(|(_, value)| *value);
    if let Some(wide) = texts().chain(values).find(|text| pads_without_end(text)) {
        return Err(format!("`{wide}` pads to more than anyone reads"));
    }
    match name {
        "seq" => seq(&texts().collect::<Vec<_>>()),
        "shuf" => shuf(arguments),
        "nl" | "expand" | "unexpand" | "od" | "ls" | "column" | "fmt" | "numfmt" | "diff" => {
            widths(arguments)
        }
        _ => Ok(()),
    }
}

/// Returns true if a format has a conversion that is wider than any line: `%1000000000d`,
/// `%<(1000000000)`.
fn pads_without_end(text: &str) -> bool {
    text.split('%').skip(1).any(|conversion| {
        let start = conversion.trim_start_matches(|c: char| "-+ #.'<>|(_^E".contains(c));
        digits_at_the_start(start) > MAX_WIDTH_DIGITS
    })
}

fn digits_at_the_start(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Accepts plain numbers that are not too large, and a step that is not zero.
fn seq(numbers: &[&str]) -> Result<(), String> {
    let plain = |number: &&str| {
        let digits = number.strip_prefix('-').unwrap_or(number);
        !digits.is_empty()
            && digits.len() <= MAX_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    if let Some(number) = numbers.iter().find(|number| !plain(number)) {
        return Err(format!("it may count to `{number}` for ever"));
    }
    match numbers {
        [_, step, _] if step.parse::<f64>().is_ok_and(|step| step.abs() >= 0.001) => Ok(()),
        [_, step, _] => Err(format!("with the step `{step}` it may count for ever")),
        _ => Ok(()),
    }
}

/// Accepts repeated lines only with a count, and no range that is too large.
fn shuf(arguments: &SortedArguments<'_>) -> Result<(), String> {
    if arguments.has(&["r", "repeat"]) && !arguments.has(&["n", "head-count"]) {
        return Err("it repeats for ever".to_owned());
    }
    let numbers = ["i", "input-range", "n", "head-count"];
    let given = arguments.options.iter().filter(|(name, _)| numbers.contains(name));
    let mut large = given.filter_map(|(_, value)| *value).filter(|value| has_large_number(value));
    large.next().map_or(Ok(()), |value| Err(format!("`{value}` are more lines than anyone reads")))
}

fn widths(arguments: &SortedArguments<'_>) -> Result<(), String> {
    const WIDTHS: &[&str] =
        &["w", "W", "t", "T", "c", "g", "tabs", "width", "number-width", "tabsize", "columns", "padding"];
    let given = arguments.options.iter().filter(|(name, _)| WIDTHS.contains(name));
    let too_wide = |value: &&str| longest_number(value) > MAX_WIDTH_DIGITS;
    let wide = given.filter_map(|(_, value)| *value).find(too_wide);
    wide.map_or(Ok(()), |value| Err(format!("`{value}` is wider than anyone reads")))
}

/// Returns an error that says why a jq filter may run forever.
pub(super) fn jq(filter: &str) -> Result<(), String> {
    const ENDLESS: &[&str] = &["repeat", "until", "while", "def", "infinite", "recurse", "limit", "label"];
    let mut names = filter.split(|c: char| !c.is_alphanumeric() && c != '_');
    if let Some(name) = names.find(|name| ENDLESS.contains(name)) {
        // Without arguments it visits the existing values and ends.
        let visits = name == "recurse" && !filter.contains("recurse(");
        if !visits {
            return Err(format!("`{name}` in its filter may never end"));
        }
    }
    // `range(1e12)` and `"x" * 1e9`.
    let multiplies = filter.contains("range") || filter.contains('*');
    if multiplies && has_large_number(filter) {
        return Err("a number in its filter makes more than anyone reads".to_owned());
    }
    Ok(())
}

/// Returns true if a text has a number with too many digits, or with an exponent.
fn has_large_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let exponent = bytes.windows(3).any(|three| {
        three[0].is_ascii_digit()
            && matches!(three[1], b'e' | b'E')
            && (three[2].is_ascii_digit() || three[2] == b'+')
    });
    exponent || longest_number(text) > MAX_DIGITS
}

fn longest_number(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or_default()
}
