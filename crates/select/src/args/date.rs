//! Dates: parses them in text, moves them by days and formats them.

use std::fmt;

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalendarDate {
    /// The year.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u32,
    /// The day, 1 to 31.
    pub day: u32,
}

impl fmt::Display for CalendarDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

impl CalendarDate {
    /// Returns the date, or `None` if there is no such day.
    pub fn new(year: i32, month: u32, day: u32) -> Option<Self> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=last).contains(&day).then_some(Self { year, month, day })
    }

    /// Returns the first complete date of a text, such as a line that gives the current day.
    pub fn first_in(text: &str) -> Option<Self> {
        let starts = text.char_indices().take(2_000).map(|(at, _)| at);
        let mut found = starts.filter_map(|at| read(&text[at..], None));
        found.next().map(|(date, _)| date)
    }

    /// Returns the following day.
    fn next(self) -> Self {
        Self::new(self.year, self.month, self.day + 1)
            .or_else(|| Self::new(self.year, self.month + 1, 1))
            .unwrap_or(Self { year: self.year + 1, month: 1, day: 1 })
    }

    /// Returns the preceding day.
    fn previous(self) -> Self {
        let (year, month) = if self.month == 1 { (self.year - 1, 12) } else { (self.year, self.month - 1) };
        Self::new(self.year, self.month, self.day.wrapping_sub(1))
            .or_else(|| (28..=31).rev().find_map(|day| Self::new(year, month, day)))
            .unwrap_or(self)
    }
}

/// Parses a date at the beginning of a text. Returns it with its length in bytes. A date without a
/// year is taken to be in the current year.
pub(super) fn read(text: &str, today: Option<CalendarDate>) -> Option<(CalendarDate, usize)> {
    numeric(text)
        .or_else(|| chinese(text, today))
        .or_else(|| english(text, today))
        .or_else(|| relative(text, today))
}

/// Parses `2023-05-01`, `2023/5/1`, `05/01/2023`.
fn numeric(text: &str) -> Option<(CalendarDate, usize)> {
    let (first, rest) = digits(text, 4)?;
    let separator = rest.chars().next().filter(|c| "-/.".contains(*c))?;
    let (second, rest) = digits(&rest[1..], 2)?;
    let (third, end) = digits(rest.strip_prefix(separator)?, 4)?;
    let date = if first > 31 {
        CalendarDate::new(i32::try_from(first).ok()?, second, third)
    } else {
        let year = i32::try_from(third).ok().filter(|year| *year > 31)?;
        CalendarDate::new(year, first, second).or_else(|| CalendarDate::new(year, second, first))
    };
    date.map(|date| (date, text.len() - end.len()))
}

/// Parses `2023年5月1日`, `5月1号`.
fn chinese(text: &str, today: Option<CalendarDate>) -> Option<(CalendarDate, usize)> {
    let (first, rest) = digits(text, 4)?;
    let (year, month, rest) = match rest.strip_prefix('年') {
        Some(rest) => {
            let (month, rest) = digits(rest.trim_start(), 2)?;
            (i32::try_from(first).ok()?, month, rest)
        }
        None => (today?.year, first, rest),
    };
    let (day, rest) = digits(rest.strip_prefix('月')?.trim_start(), 2)?;
    let end = rest.strip_prefix('日').or_else(|| rest.strip_prefix('号'))?;
    CalendarDate::new(year, month, day).map(|date| (date, text.len() - end.len()))
}

/// Parses `March 5th 2023`, `5 March, 2023`, `March 5`.
fn english(text: &str, today: Option<CalendarDate>) -> Option<(CalendarDate, usize)> {
    let (day, month, rest) = if let Some((day, rest)) = digits(text, 2) {
        let (month, rest) = month(ordinal(rest).trim_start().trim_start_matches("of "))?;
        (day, month, rest)
    } else {
        let (month, rest) = month(text)?;
        let (day, rest) = digits(rest.trim_start(), 2)?;
        (day, month, ordinal(rest))
    };
    let after = rest.trim_start_matches(',').trim_start();
    let (year, rest) = match digits(after, 4).filter(|(year, _)| *year > 1000) {
        Some((year, end)) => (i32::try_from(year).ok()?, end),
        None => (today?.year, rest),
    };
    CalendarDate::new(year, month, day).map(|date| (date, text.len() - rest.len()))
}

fn relative(text: &str, today: Option<CalendarDate>) -> Option<(CalendarDate, usize)> {
    let today = today?;
    let days = [
        ("the day after tomorrow", today.next().next()),
        ("tomorrow", today.next()),
        ("yesterday", today.previous()),
        ("today", today),
        ("tonight", today),
        ("后天", today.next().next()),
        ("明天", today.next()),
        ("昨天", today.previous()),
        ("今天", today),
    ];
    days.into_iter().find(|(word, _)| text.starts_with(word)).map(|(word, date)| (date, word.len()))
}

fn month(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let name = text[..end].to_ascii_lowercase();
    let full = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "sept",
    ];
    let known = MONTHS.contains(&name.as_str()) || full.contains(&name.as_str());
    let month = MONTHS.iter().zip(1..).find(|(short, _)| name.starts_with(*short)).map(|(_, month)| month)?;
    known.then(|| (month, text[end..].trim_start_matches('.')))
}

fn ordinal(text: &str) -> &str {
    let suffix = ["st", "nd", "rd", "th"].iter().find_map(|suffix| text.strip_prefix(suffix));
    suffix.unwrap_or(text)
}

fn digits(text: &str, most: usize) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 || end > most {
        return None;
    }
    text[..end].parse().ok().map(|number| (number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_usual_forms() {
        let today = CalendarDate::new(2024, 2, 28);
        let cases = [
            ("2023-05-01 x", "2023-05-01", 10),
            ("05/01/2023", "2023-05-01", 10),
            ("2023年5月1日至", "2023-05-01", 15),
            ("5月1号", "2024-05-01", 8),
            ("March 5th 2023?", "2023-03-05", 14),
            ("5 March", "2024-03-05", 7),
            ("Feb. 3, 2020", "2020-02-03", 12),
            ("the day after tomorrow", "2024-03-01", 22),
            ("昨天", "2024-02-27", 6),
        ];
        for (text, date, bytes) in cases {
            let found = read(text, today).map(|(date, bytes)| (date.to_string(), bytes));
            assert_eq!(found, Some((date.to_owned(), bytes)), "{text}");
        }
        assert_eq!(read("2023-02-30", None), None);
        assert_eq!(read("mayor 5", today), None);
        assert_eq!(
            CalendarDate::first_in("It is Friday, November 03, 2023."),
            CalendarDate::new(2023, 11, 3)
        );
    }
}
