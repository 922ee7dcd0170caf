//! Tests of what patterns mean, and of what they cost.

use proptest::prelude::*;

use super::{super::budget::STEPS, *};

fn find(pattern: &str, text: &str) -> Option<bool> {
    Patterns::default().find(pattern, text, &mut Budget::new()).unwrap()
}

#[test]
fn patterns_mean_what_they_mean_in_ecmascript() {
    let rows: [(&str, &[&str], &[&str]); 46] = [
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
        // Looking around.
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", &["Password1"], &["password1", "Pass1"]),
        (r"^(?!.*\.\.)[\w.]+$", &["a.b"], &["a..b"]),
        (r"(?<=\$)\d+(?!\d|\.)", &["$42"], &["42", "$4.2"]),
        (r"(?<!a.*)b", &["b", "cb"], &["ab", "axxb"]),
        (r"^(?:(?=a)[ab]|c)+$", &["acaa"], &["ab"]),
        (r"(?<=^(\w)\1)c", &["ac"], &["aac"]),
        (r"(?<=\1(\w))c", &["aac"], &["abc"]),
        (r"(?=(a+))\1b", &["aab"], &["ac"]),
        // Looks from the end on, with rounds of nothing in them: what fails within the round may succeed after it.
        (r"^.*(?=(?:a*)*b)a", &["aab", "ab"], &["aa", "b"]),
        (r"^.*?(?=(?:a*|c)*b)a", &["cab", "acb"], &["ca"]),
        (r"^(?:.*(?=(?:a*)*b)(?:xx|a))ab$", &["aab"], &["ab"]),
        (r"^(?!(a))\1b$", &["b"], &["ab"]),
        // Going back.
        (r#"^(["'])[^"']*\1$"#, &["'a'", "\"a\""], &["'a\""]),
        (r"^(?<x>a|b)\k<x>$", &["aa", "bb"], &["ab"]),
        (r"^(?:(a)|b)*\1$", &["ab", "aa"], &["abc"]),
        (r"^\1(a)$", &["a"], &["aa"]),
        (r"^(a*)*\1$", &["", "aa"], &["b"]),
        (r"^(a+?)\1*$", &["aaa"], &["aab"]),
        (r"^(?:\1|(a))+$", &["aa"], &["b"]),
        (r"^(?<n>a)|(?<n>b)\k<n>$", &["a", "bb"], &["b"]),
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
fn no_pattern_takes_more_steps_than_are_counted() {
    let text = format!("{}!", "ab".repeat(4000));
    let cost = |pattern: &str| {
        let mut budget = Budget::new();
        let found = Patterns::default().find(pattern, &text, &mut budget).unwrap();
        (found, budget.spent())
    };
    let linear = text.len() / STEPS;
    for (pattern, least, most) in
        [("^a", 0, 10), ("c", linear, 3 * linear), (r"^([ab]+)+$", linear, 16 * linear)]
    {
        let (found, visits) = cost(pattern);
        assert_eq!(found, Some(pattern == "^a"), "{pattern}");
        assert!((least..=most).contains(&visits), "{pattern} {visits}");
    }
    // A look is never put to the same place twice, whether it found something there or not.
    for pattern in [r"^(?:(?=.*!)[ab])*!$", r"^(?:(?=.*c|.).)*$", r"^(?:(?<=a.*|^).)*$", r"^(?:(?!.*c).)*$"] {
        let (found, visits) = cost(pattern);
        assert_eq!(found, Some(true), "{pattern}");
        assert!(visits < 20 * linear, "{pattern} {visits}");
    }
    // Far too many ways to try them all.
    for pattern in [r"([ab]+)+\1c", "([ab]{500})+c", "(?:(?=([ab]+)+c)|b)+c"] {
        let (found, visits) = cost(pattern);
        assert!(found != Some(true) && visits < 50_000, "{pattern} {found:?} {visits}");
    }
}

/// Patterns of two letters, with everything that leads to a place in more than one way.
fn pattern_like() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", ".", "", "^", "$"]).prop_map(str::to_owned);
    leaf.prop_recursive(5, 24, 4, |inner| {
        let mark = prop::sample::select(vec!["*", "+", "?", "*?", "{2}"]);
        let open = prop::sample::select(vec!["(?:", "(?=", "(?!", "(?<=", "(?<!"]);
        prop_oneof![
            (inner.clone(), mark).prop_map(|(inside, mark)| format!("(?:{inside}){mark}")),
            (open, inner.clone()).prop_map(|(open, inside)| format!("{open}{inside})")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| all.concat()),
            prop::collection::vec(inner, 2..4).prop_map(|all| format!("(?:{})", all.join("|"))),
        ]
    })
}

proptest! {
    /// A pattern that goes back to a group notes nothing, and tries all ways.
    #[test]
    fn what_is_noted_changes_nothing(pattern in pattern_like(), text in "[ab]{0,6}") {
        let all_ways = find(&format!("()(?:{pattern})\\1"), &text);
        prop_assume!(all_ways.is_some());
        prop_assert_eq!(find(&pattern, &text), all_ways);
    }
}
