//! Makes `crates/shape/data/languages.txt` from Linguist's `languages.yml`: which names of files,
//! endings and interpreters mean which language. Where several languages claim one, it is left to
//! the one people mean, or to none.

use std::{collections::BTreeMap, fs, path::Path};

/// Claims that several languages make, and whose they are. The rest follows from Linguist: the
/// language that lists an ending first.
const MEANT: [(&str, &str); 44] = [
    ("!lua", "Lua"),
    ("!node", "JavaScript"),
    ("!perl", "Perl"),
    (".bat", "Batchfile"),
    (".cc", "C++"),
    (".cfg", "INI"),
    (".cl", "Common Lisp"),
    (".cls", "TeX"),
    (".cmd", "Batchfile"),
    (".cs", "C#"),
    (".d", "D"),
    (".ex", "Elixir"),
    (".f", "Fortran"),
    (".fs", "F#"),
    (".gradle", "Gradle"),
    (".gs", "JavaScript"),
    (".h", "C"),
    (".hh", "C++"),
    (".hpp", "C++"),
    (".hs", "Haskell"),
    (".html", "HTML"),
    (".inc", "PHP"),
    (".jl", "Julia"),
    (".json", "JSON"),
    (".l", "Lex"),
    (".m", "Objective-C"),
    (".md", "Markdown"),
    (".ml", "OCaml"),
    (".mod", "Go Module"),
    (".p", "Gnuplot"),
    (".php", "PHP"),
    (".pl", "Perl"),
    (".plist", "XML Property List"),
    (".pm", "Perl"),
    (".r", "R"),
    (".rs", "Rust"),
    (".s", "Assembly"),
    (".sql", "SQL"),
    (".ts", "TypeScript"),
    (".txt", "Text"),
    (".v", "Verilog"),
    (".xml", "XML"),
    (".yaml", "YAML"),
    (".yml", "YAML"),
];

/// A language with what it claims: endings with their dot, names behind `=`, interpreters behind
/// `!`.
struct Language {
    name: String,
    claims: Vec<String>,
}

pub(crate) fn run(root: &Path, file: &Path) -> Result<String, Vec<String>> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| vec![format!("{path}: {error}")]
    };
    let languages = parsed(&fs::read_to_string(file).map_err(failed(file))?);
    let path = root.join("crates/shape/data/languages.txt");
    fs::write(&path, written(&languages)).map_err(failed(&path))?;
    Ok(format!("languages: {}", languages.len()))
}

/// Reads as much of YAML as that file uses: a language begins at the margin, its lists are indented
/// by two.
fn parsed(text: &str) -> Vec<Language> {
    let mut languages: Vec<Language> = Vec::new();
    let mut sign = None;
    for line in text.lines() {
        if let Some(item) = line.strip_prefix("  - ") {
            let item = item.trim().trim_matches('"');
            if let (Some(sign), Some(language)) = (sign, languages.last_mut())
                && !item.contains(char::is_whitespace)
            {
                language.claims.push(format!("{sign}{item}"));
            }
        } else if let Some(key) = line.strip_prefix("  ") {
            sign = match key.split(':').next() {
                Some("extensions") => Some(""),
                Some("filenames") => Some("="),
                Some("interpreters") => Some("!"),
                _ => None,
            };
        } else if let Some(name) = line.strip_suffix(':').filter(|line| !line.starts_with('#')) {
            let name = name.trim_matches('"').to_owned();
            languages.push(Language { name, claims: Vec::new() });
        }
    }
    languages
}

/// One line for each language that is left something: its name, a tab, and its claims, each between
/// spaces.
fn written(languages: &[Language]) -> String {
    let mut claimed: BTreeMap<&str, Vec<(&str, bool)>> = BTreeMap::new();
    for Language { name, claims } in languages {
        for claim in claims {
            let first = claims.iter().find(|other| other.chars().next() == claim.chars().next());
            claimed.entry(claim).or_default().push((name, first == Some(claim)));
        }
    }
    let owner = |claim: &str| {
        let meant = MEANT.iter().find(|(known, _)| *known == claim).map(|(_, name)| *name);
        let all = claimed.get(claim)?;
        let mut first = all.iter().filter(|(_, first)| *first);
        match (meant, &all[..], first.next(), first.next()) {
            (Some(meant), ..) => Some(meant),
            (None, [(only, _)], ..) => Some(*only),
            (None, _, Some((first, _)), None) => Some(*first),
            _ => None,
        }
    };
    let mut text = String::new();
    for Language { name, claims } in languages {
        let own: Vec<_> =
            claims.iter().filter(|claim| owner(claim) == Some(name)).map(String::as_str).collect();
        if !own.is_empty() {
            text.extend([name, "\t ", &own.join(" "), " \n"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_languages_claim_goes_to_one_of_them_or_to_none() {
        let yaml = "# words\nA:\n  type: data\n  extensions:\n  - \".a\"\n  - \".x\"\n  - \".y\"\n  interpreters:\n  - aa\n  tm_scope: none\n\
                    B:\n  extensions:\n  - \".x\"\n  filenames:\n  - B file\n  - Bfile\nC:\n  extensions:\n  - \".c\"\n  - \".y\"\n";
        assert_eq!(written(&parsed(yaml)), "A\t .a !aa \nB\t .x =Bfile \nC\t .c \n");
    }
}
