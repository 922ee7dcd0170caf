//! Tests of what patterns mean, and of what they cost.

use proptest::prelude::*;

use super::{translation::translate, *};

fn find(pattern: &str, text: &str) -> Option<bool> {
    PatternCache::default().find(pattern, text)
}

#[test]
fn patterns_mean_what_they_mean_in_ecmascript() {
    let rows: [(&str, &[&str], &[&str]); 30] = [
        (r"^[\w.-]+@[\w.-]+\.\w{2,4}$", &["a.b@c.de"], &["a.b", "é@c.de"]),
        (r"^\d{3}\D$", &["123x"], &["١٢٣x", "1234"]),
        (r"^[^\s\d]+$", &["ab"], &["a b", "a1", "a\u{feff}"]),
        (r"\bcat\b", &["a cat"], &["cats", "écat_"]),
        (r"\Bcat", &["a_cat"], &["a cat"]),
        (r"^[[a]+$", &["[a"], &["b"]),
        (r"^[a&&b~~]+$", &["a&b~"], &["c"]),
        (r"^[+-\d]+$", &["+-1"], &["/", ";"]),
        (r"^[+--]+$", &["+,-"], &["."]),
        (r"^[a-]+$", &["a-"], &["b"]),
        (r"^[^]$", &["\n", "é"], &["", "ab"]),
        (r"^[^[:]+$", &["a"], &["a:", "["]),
        (r"^[\b]$", &["\u{8}"], &["b"]),
        (r"^\/[^\/]+$", &["/x"], &["//"]),
        (r"^[\u4e00-\u9fa5]+$", &["中文"], &["zh", "中a"]),
        (r"^\u00e9\x41\u{1F600}\ud83d\ude00$", &["éA😀😀"], &["éA😀"]),
        (r"^\cC\t\0$", &["\u{3}\t\0"], &["cC"]),
        (r"^\p{Letter}\P{L}\p{Script=Greek}\p{Lu}$", &["é1αÉ"], &["11αA", "éaαA", "é1aA", "é1αa"]),
        (r"^[^\p{L}\d]+$", &["-–"], &["-a", "1"]),
        (r"^.$", &["😀", "é"], &["", "\n", "\r", "\u{2028}"]),
        (r"a$", &["ba"], &["a\n"]),
        (r"^(a|b(c|d))*$", &["", "abcbd"], &["b"]),
        (r"^a{2}b{1,}c{0,2}?$", &["aab", "aabbcc"], &["ab", "aabccc"]),
        (r"^{a}{2}$", &["{a}}"], &["aa"]),
        (r"a|^$", &["", "xa"], &["x"]),
        (r"(?<year>\d{4})-(?P<month>\d\d)", &["2026-01"], &["26-1"]),
        // Looking ahead from the start.
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", &["Password1"], &["password1", "Pass1"]),
        (r"^(?!.*\.\.)[\w.]+$", &["a.b"], &["a..b"]),
        (r"^(?!a|b)(?=[^c])\w", &["d", "da"], &["a", "b1", "c", ""]),
        (
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
            &["a.b@c.de"],
            &[".a@c.de", "a..b@c.de", "a.@c.de", "a@c.d"],
        ),
    ];
    for (pattern, right, wrong) in rows {
        for (texts, expected) in [(right, true), (wrong, false)] {
            for text in texts {
                assert_eq!(find(pattern, text), Some(expected), "{pattern} {text:?}");
            }
        }
    }
}

#[test]
fn what_others_read_differently_or_nobody_can_is_not_checked() {
    for pattern in [
        r"\Aa",
        r"a\z",
        r"\a",
        r"\i",
        "[]a]",
        "^[^]]+$",
        r"^\[[^]]+\]$",
        "^[[:alpha:]]+$",
        "[^[:space:]_]",
        "[z-a]",
        "a{,3}",
        "a{3,2}",
        "(?i)a",
        "(?-u:a)",
        "(?x: a)",
        "(?>a)",
        "a++",
        "*",
        "(?:*)",
        "^*",
        "(a",
        "a)",
        "[a",
        r"a\",
        // No engine that takes linear time knows these.
        r"(?<=\$)\d+",
        "(?<!a.*)b",
        "(?=a)b",
        "^(?=a)b|c",
        "^(?:(?=a)[ab]|c)+$",
        "^(?:(?!foo).)*$",
        r#"^(["'])[^"']*\1$"#,
        r"^(?<x>a|b)\k<x>$",
        r"\2(a)",
        r"\k<x>",
        r"\p{Nonsense}",
        r"\p",
        r"\xg",
        r"\u12",
        r"\ud83d",
        r"\c1",
        "a{99999999999999999999}",
        "(?:){99999}",
        "((a{100}){100}){100}",
    ] {
        assert_eq!(find(pattern, "a"), None, "{pattern}");
    }
    assert_eq!(find(&"(".repeat(500), "a"), None);
    assert_eq!(find(&"a".repeat(MAX_BYTES + 1), "a"), None);
    assert_eq!(find("a", &"a".repeat(MAX_TEXT_BYTES + 1)), None);
}

#[test]
fn a_pattern_has_as_many_parts_as_what_it_repeats() {
    for (pattern, size) in [
        ("abc", 4),
        ("^[a-z]+$", 6),
        ("(?:ab){10}", 31),
        ("(?:a{10}){10}", 211),
        (".{100}", 1301),
        (r"\p{L}", 501),
        ("^(?=.*a)b", 16),
    ] {
        assert_eq!(translate(pattern).unwrap().size, size, "{pattern}");
    }
}

#[test]
fn patterns_of_one_check_share_what_they_may_take() {
    let text = "ab".repeat(4000);
    let mut patterns = PatternCache::default();
    let found: Vec<_> = (0..1000).map(|_| patterns.find("^([ab]+)+$", &text)).collect();
    let checked = found.iter().take_while(|found| **found == Some(true)).count();
    assert!((100..300).contains(&checked), "{checked}");
    // The rest is left to the tool, and so is a pattern that was not met before.
    assert!(found[checked..].iter().all(Option::is_none));
    assert_eq!(patterns.find(r"\p{L}{30}", "a"), None);
    assert_eq!(find(r"\p{L}{30}", "a"), Some(false));
}

/// Patterns of two letters, which mean the same to both engines.
fn pattern_like() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", ".", "", "^", "$"]).prop_map(str::to_owned);
    leaf.prop_recursive(5, 24, 4, |inner| {
        let mark = prop::sample::select(vec!["*", "+", "?", "*?", "{2}"]);
        prop_oneof![
            (inner.clone(), mark).prop_map(|(inside, mark)| format!("(?:{inside}){mark}")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| all.concat()),
            prop::collection::vec(inner, 2..4).prop_map(|all| format!("(?:{})", all.join("|"))),
        ]
    })
}

proptest! {
    #[test]
    fn rewriting_changes_no_meaning(pattern in pattern_like(), text in "[ab]{0,6}") {
        let same = Regex::new(&pattern).unwrap().is_match(&text);
        prop_assert_eq!(find(&pattern, &text), Some(same));
    }

    #[test]
    fn a_look_ahead_is_a_condition(first in pattern_like(), not in pattern_like(), text in "[ab]{0,6}") {
        let begins = |pattern: &str| Regex::new(&format!("^(?:{pattern})")).unwrap().is_match(&text);
        let both = begins(&first) && !begins(&not) && text.contains('a');
        prop_assert_eq!(find(&format!("^(?={first})(?!{not})[^]*a"), &text), Some(both));
    }

    #[test]
    fn every_rewritten_pattern_compiles(pattern in r"([\[\]\\(){}^$.|?*+:=!<>,&~\-a-du0-9 p]|\\[dwsbBDWSu/]){0,12}") {
        let expressions = translate(&pattern).into_iter().flat_map(|translation| translation.parts);
        for (expression, _) in expressions {
            prop_assert!(Regex::new(&expression).is_ok(), "{} became {}", pattern, expression);
        }
    }
}
