//! Derives the insight of a file: its size, language and outline.

use std::path::Path;

use windlass_contract::{
    insight::{Detail, FileInsight, Insight},
    wording::counted,
};

use super::{language, outline};

/// The known properties of a file: path, size, encoding and text.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Size in bytes.
    pub bytes: u64,
    /// Name of the character encoding.
    pub encoding: &'a str,
    /// The text, or only its beginning if the file is too long.
    pub text: Text<'a>,
}

/// The text of a file, whole or in part.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// The whole text.
    Whole(&'a str),
    /// The beginning of the text.
    Beginning(&'a str),
}

impl File<'_> {
    /// Returns the insight of the file.
    pub fn insight(&self) -> Insight {
        let (text, whole) = match self.text {
            Text::Whole(text) => (text, true),
            Text::Beginning(text) => (text, false),
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let language = language::detect(&name, text);
        let lines = whole.then(|| text.lines().count() as u64);
        let outline =
            language.filter(|_| whole).map(|language| outline::sections(language, text)).unwrap_or_default();
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
