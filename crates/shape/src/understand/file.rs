//! What a file is.

use std::path::Path;

use windlass_contract::{
    insight::{Detail, FileInsight, Insight},
    wording::counted,
};

use super::{language, outline};

/// What is known of a file: its path, its size, how its characters are written, and all of its text, unless that is too
/// much.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// How many bytes it has.
    pub bytes: u64,
    /// How its characters are written.
    pub encoding: &'a str,
    /// Its text: all of it, or only how it begins.
    pub text: Text<'a>,
}

/// How much of a file's text there is.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// All.
    Whole(&'a str),
    /// Only the beginning.
    Beginning(&'a str),
}

impl File<'_> {
    /// What the file is.
    pub fn insight(&self) -> Insight {
        let (text, whole) = match self.text {
            Text::Whole(text) => (text, true),
            Text::Beginning(text) => (text, false),
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let language = language::of(&name, text);
        let lines = whole.then(|| text.lines().count() as u64);
        let outline =
            language.filter(|_| whole).map(|language| outline::of(language, text)).unwrap_or_default();
        let size = lines.map_or_else(|| counted(self.bytes, "byte"), |lines| counted(lines, "line"));
        let summary =
            format!("{size}{}", language.map(|language| format!(" of {language}")).unwrap_or_default());
        let detail = FileInsight {
            path: self.path.to_owned(),
            bytes: self.bytes,
            lines,
            encoding: self.encoding.to_owned(),
            language: language.map(str::to_owned),
            outline,
        };
        Insight { summary, detail: Detail::File(detail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_lines_and_language_if_all_of_it_is_known() {
        let file = |text| File { path: Path::new("/w/a.py"), bytes: 30, encoding: "UTF-8", text }.insight();
        let (whole, part) = (file(Text::Whole("def f():\n    pass\n")), file(Text::Beginning("def f():\n")));
        assert_eq!((&*whole.summary, &*part.summary), ("2 lines of Python", "30 bytes of Python"));
        let Detail::File(FileInsight { lines, outline, .. }) = whole.detail else { panic!() };
        assert_eq!((lines, outline.len()), (Some(2), 1));
    }
}
