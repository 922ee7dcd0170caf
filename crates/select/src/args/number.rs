//! Parses numbers as people write them: digits, words and Chinese numerals.

/// Returns the value of an English number word.
pub(super) fn word(word: &str) -> Option<f64> {
    const UNITS: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let unit = UNITS.iter().zip(0_u8..).find(|(name, _)| **name == word).map(|(_, value)| value);
    let ten = TENS.iter().zip(2_u8..).find(|(name, _)| **name == word).map(|(_, value)| value * 10);
    unit.or(ten).map(f64::from).or(match word {
        "hundred" => Some(100.0),
        "dozen" => Some(12.0),
        _ => None,
    })
}

/// Returns the factor of a word that follows a number.
pub(super) fn scale(word: &str) -> Option<f64> {
    match word {
        "thousand" | "千" => Some(1e3),
        "万" => Some(1e4),
        "million" | "百万" => Some(1e6),
        "亿" => Some(1e8),
        "billion" => Some(1e9),
        _ => None,
    }
}

/// Returns the value of a Chinese numeral such as 三百二十五.
pub(super) fn chinese(text: &str) -> Option<f64> {
    let (mut total, mut section, mut digit) = (0.0, 0.0, None);
    for c in text.chars() {
        if let Some(value) = "零一二三四五六七八九".chars().zip(0_u8..).find(|(d, _)| *d == c).map(|(_, v)| v)
        {
            digit = Some(f64::from(value));
            continue;
        }
        match c {
            '两' => digit = Some(2.0),
            '十' | '百' | '千' => {
                let times = if c == '十' {
                    10.0
                } else if c == '百' {
                    100.0
                } else {
                    1000.0
                };
                section += digit.take().unwrap_or(1.0) * times;
            }
            '万' | '亿' => {
                let times = if c == '万' { 1e4 } else { 1e8 };
                total += (section + digit.take().unwrap_or(0.0)) * times;
                section = 0.0;
            }
            _ => return None,
        }
    }
    Some(total + section + digit.unwrap_or(0.0))
}

/// Returns true if a character can be part of a Chinese numeral.
pub(super) fn is_chinese(c: char) -> bool {
    "零一二三四五六七八九两十百千万亿".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_numerals_are_numbers() {
        let cases = [
            ("三", 3.0),
            ("十五", 15.0),
            ("二十", 20.0),
            ("三百二十五", 325.0),
            ("两万三千", 23000.0),
            ("一亿零五", 1e8 + 5.0),
        ];
        for (text, value) in cases {
            assert_eq!(chinese(text), Some(value), "{text}");
        }
        assert_eq!(chinese("三月"), None);
    }
}
