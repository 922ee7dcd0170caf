//! Runs of blanks as they are shown to a person: counted if they could push something off the
//! screen.

use super::hidden_characters::is_invisible;

/// Returns a text in which every run of more blanks than `most` is replaced by its length. Line
/// breaks and invisible characters count as blanks; short runs stay as they are.
pub fn count_blanks(text: &str, most: usize) -> String {
    let (mut out, mut run) = (String::new(), String::new());
    for c in text.chars() {
        if c.is_whitespace() || (is_invisible(c) && !c.is_control()) {
            run.push(c);
        } else {
            push_run(&mut run, most, &mut out);
            out.push(c);
        }
    }
    push_run(&mut run, most, &mut out);
    out
}

fn push_run(run: &mut String, most: usize, out: &mut String) {
    let (blanks, breaks) = (run.chars().count(), run.matches('\n').count());
    match (blanks > most, breaks) {
        (false, _) => out.push_str(run),
        (true, 0) => out.push_str(&format!(" [{blanks} blanks] ")),
        (true, 1) => out.push_str(&format!(" [{blanks} blanks with a line break] ")),
        (true, _) => out.push_str(&format!(" [{blanks} blanks with {breaks} line breaks] ")),
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_counted_and_short_ones_stay() {
        assert_eq!(count_blanks("a  b\n\tc", 3), "a  b\n\tc");
        assert_eq!(count_blanks(&format!("a{}b", " ".repeat(3000)), 8), "a [3000 blanks] b");
        assert_eq!(count_blanks(&format!("a{}b", "\u{a0}".repeat(9)), 8), "a [9 blanks] b");
        assert_eq!(count_blanks(&format!("a{}b", "\u{200b}".repeat(9)), 8), "a [9 blanks] b");
        assert_eq!(count_blanks(&format!("a\n{}b", " ".repeat(9)), 8), "a [10 blanks with a line break] b");
        assert_eq!(count_blanks(&format!("a{}", " \n".repeat(50)), 8), "a [100 blanks with 50 line breaks] ");
    }
}
