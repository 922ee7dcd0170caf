//! Characters that look like ASCII and are not. A shell does not treat them as a person reads them.

use std::ops::RangeInclusive;

/// Characters of Unicode 16 whose compatibility decomposition (NFKC) is ASCII, and mathematical
/// Greek letters. Raised, lowered, circled and squared ones are not listed, because they do not
/// look like ASCII; nor are `…` and `№`.
const STYLED: &[RangeInclusive<char>] = &[
    '\u{132}'..='\u{133}',
    '\u{17f}'..='\u{17f}',
    '\u{1c7}'..='\u{1cc}',
    '\u{1f1}'..='\u{1f3}',
    '\u{37e}'..='\u{37e}',
    '\u{1fef}'..='\u{1fef}',
    '\u{2024}'..='\u{2025}',
    '\u{203c}'..='\u{203c}',
    '\u{2047}'..='\u{2049}',
    '\u{20a8}'..='\u{20a8}',
    '\u{2100}'..='\u{2102}',
    '\u{2105}'..='\u{2106}',
    '\u{210a}'..='\u{2115}',
    '\u{2119}'..='\u{211d}',
    '\u{2121}'..='\u{2121}',
    '\u{2124}'..='\u{2124}',
    '\u{2128}'..='\u{2128}',
    '\u{212a}'..='\u{212a}',
    '\u{212c}'..='\u{2134}',
    '\u{2139}'..='\u{2139}',
    '\u{213b}'..='\u{213b}',
    '\u{2145}'..='\u{2149}',
    '\u{2160}'..='\u{217f}',
    '\u{2474}'..='\u{24b5}',
    '\u{2a74}'..='\u{2a76}',
    '\u{fb00}'..='\u{fb06}',
    '\u{fb29}'..='\u{fb29}',
    '\u{fe10}'..='\u{fe19}',
    '\u{fe30}'..='\u{fe38}',
    '\u{fe47}'..='\u{fe48}',
    '\u{fe4d}'..='\u{fe6b}',
    '\u{ff01}'..='\u{ff5e}',
    '\u{1ccd6}'..='\u{1ccf9}',
    '\u{1d400}'..='\u{1d7ff}',
    '\u{1f100}'..='\u{1f10a}',
    '\u{1f110}'..='\u{1f149}',
    '\u{1fbf0}'..='\u{1fbf9}',
];

/// Signs without such a decomposition that have the shape of `/`, `\`, `|`, `-`, `~`, `^`, `*`,
/// `:`, `,`, `<`, `>`, brackets or an apostrophe.
const SIGNS: &[RangeInclusive<char>] = &[
    '\u{1c0}'..='\u{1c0}',
    '\u{1c3}'..='\u{1c3}',
    '\u{2b9}'..='\u{2bd}',
    '\u{2c2}'..='\u{2c6}',
    '\u{2c8}'..='\u{2c8}',
    '\u{2cb}'..='\u{2cb}',
    '\u{2d0}'..='\u{2d0}',
    '\u{2d7}'..='\u{2d7}',
    '\u{2dc}'..='\u{2dc}',
    '\u{2f8}'..='\u{2f8}',
    '\u{374}'..='\u{375}',
    '\u{589}'..='\u{589}',
    '\u{5c0}'..='\u{5c0}',
    '\u{5c3}'..='\u{5c3}',
    '\u{66d}'..='\u{66d}',
    '\u{2010}'..='\u{2012}',
    '\u{201a}'..='\u{201a}',
    '\u{2032}'..='\u{2032}',
    '\u{2035}'..='\u{2035}',
    '\u{2039}'..='\u{203a}',
    '\u{2041}'..='\u{2044}',
    '\u{204e}'..='\u{204f}',
    '\u{2053}'..='\u{2053}',
    '\u{2212}'..='\u{2212}',
    '\u{2215}'..='\u{2217}',
    '\u{2223}'..='\u{2223}',
    '\u{2236}'..='\u{2236}',
    '\u{223c}'..='\u{223c}',
    '\u{2502}'..='\u{2503}',
    '\u{2571}'..='\u{2572}',
    '\u{2758}'..='\u{275a}',
    '\u{2768}'..='\u{2775}',
    '\u{29f5}'..='\u{29f9}',
    '\u{a4f8}'..='\u{a4ff}',
    '\u{a789}'..='\u{a78a}',
    '\u{a78c}'..='\u{a78c}',
];

/// Scripts and styles of letters of which some look like Latin ones and that no name mixes with
/// Latin letters: small capitals, Cherokee, Canadian syllabics, runes, Coptic, Lisu, Lycian to Old
/// Italic, Deseret, Elbasan, Warang Citi.
const SCRIPTS: &[RangeInclusive<char>] = &[
    '\u{13a0}'..='\u{13ff}',
    '\u{1400}'..='\u{167f}',
    '\u{16a0}'..='\u{16ff}',
    '\u{1d00}'..='\u{1d22}',
    '\u{2c80}'..='\u{2cff}',
    '\u{a4d0}'..='\u{a4f7}',
    '\u{ab70}'..='\u{abbf}',
    '\u{10280}'..='\u{1032f}',
    '\u{10400}'..='\u{1044f}',
    '\u{10500}'..='\u{1052f}',
    '\u{118a0}'..='\u{118df}',
];

/// Full-width punctuation of Chinese, Japanese and Korean text.
const EAST_ASIAN_SIGNS: &str = "！（），：；？～";

/// Marks each character of a text without blanks that poses as ASCII. A word between other signs is
/// checked as a whole: `paypal` with one Cyrillic letter, or `аррӏе.com`, whose first word has only
/// letters that look Latin.
pub(super) fn find(text: &str) -> Vec<bool> {
    let is_among_latin = text.chars().any(|c| c.is_ascii_alphabetic());
    let is_east_asian = text.chars().any(is_east_asian);
    let belongs = |c: char| is_east_asian && EAST_ASIAN_SIGNS.contains(c);
    let mut marks = Vec::new();
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let letters = || word.chars().filter(|c| c.is_alphabetic() && !is_in(SIGNS, *c));
        let is_mixed = letters().any(|c| c.is_ascii_alphabetic()) && letters().any(looks_latin);
        let is_whole = is_among_latin && letters().next().is_some() && letters().all(looks_latin);
        // An apostrophe is a letter of Ukrainian, for example.
        let is_other = letters().next().is_some() && !letters().any(|c| c.is_ascii_alphabetic());
        marks.extend(word.chars().map(|c| {
            (is_in(STYLED, c) && !belongs(c))
                || (is_in(SIGNS, c) && !(is_other && c.is_alphabetic()))
                || ((is_mixed || is_whole) && looks_latin(c))
        }));
    }
    marks
}

fn is_in(ranges: &[RangeInclusive<char>], c: char) -> bool {
    ranges.iter().any(|range| range.contains(&c))
}

/// Returns true if a character is Han, Kana, Hangul, or a sign of theirs.
fn is_east_asian(c: char) -> bool {
    matches!(c, '\u{3001}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns true if a letter of another script has the shape of a Latin one.
fn looks_latin(c: char) -> bool {
    const CYRILLIC: &str = "аАВсСеЕһНіІјЈкКӏӀМԛԚоОрРѕЅТуУѵԜԝхХьԁҮүԍзЗпгѡЬ";
    const GREEK: &str = "αΑΒεΕΖηΗιΙκΚΜΝνοΟρΡτΤυΥχΧγωσϲϹϳ";
    const OTHERS: &str = "օոսհցզքԼՏՍıȷɑɡɢɩɪɯɴʀʋʏʙʜʟ";
    [CYRILLIC, GREEK, OTHERS].iter().any(|letters| letters.contains(c)) || is_in(SCRIPTS, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> String {
        text.chars().zip(find(text)).filter_map(|(c, is_marked)| is_marked.then_some(c)).collect()
    }

    #[test]
    fn what_looks_like_ascii_is_found() {
        for look_alike in "\u{37e}\u{212a}\u{2024}\u{a4d0}\u{2223}\u{2bc}\u{ff04}\u{ff06}\u{2170}\u{1fef}\u{fe54}\u{2212}\
                           \u{2010}\u{a789}\u{29f5}\u{2502}\u{17f}\u{fb01}\u{1d5ba}\u{ff5c}\u{10410}\u{1d00}\u{2c9f}"
            .chars()
        {
            assert_eq!(marked(&format!("e{look_alike}vil")), look_alike.to_string(), "{look_alike:?}");
        }
        for sign in "\u{37e}\u{2223}\u{ff04}\u{ff06}\u{2024}".chars() {
            assert_eq!(marked(&sign.to_string()), sign.to_string(), "alone: {sign:?}");
        }
    }

    #[test]
    fn text_of_other_languages_is_left_alone() {
        for plain in [
            "报告（最终）：v2.txt",
            "комп\u{2bc}ютер",
            "№5",
            "m²",
            "x…",
            "①",
            "l’été",
            "a—b",
            "größe",
            "ꓡꓲꓢꓴ",
            "Δx",
            "ᏣᎳᎩ",
            "™",
        ] {
            assert_eq!(marked(plain), "", "{plain}");
        }
    }
}
