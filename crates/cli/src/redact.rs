//! `windlass redact`: copies text without its secrets.

use std::{
    env, fs,
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde_json::json;
use windlass::clean::{Cleaner, Finding, Secrets};

use crate::{
    args::{CommonOptions, RedactOptions},
    credentials,
    exit::ProgramExit,
    problem::CliProblem,
    setup,
};

/// Size of one read.
const PIECE_BYTES: usize = 1024 * 1024;
/// Maximum size of a `.env` file.
const MAX_ENV_FILE_BYTES: u64 = 1024 * 1024;
/// The names of `.env` files in a directory.
const ENV_FILES: [&str; 6] =
    [".env", ".env.local", ".env.development", ".env.production", ".env.test", ".env.staging"];

pub(crate) fn run(common: &CommonOptions, args: &RedactOptions) -> Result<ProgramExit, CliProblem> {
    let cwd = common.cd.clone().unwrap_or_else(|| ".".into());
    let secrets = if args.shapes_only { Secrets::default() } else { Secrets::knowing(known(&[cwd])) };
    let cleaner = Cleaner::new(&secrets);
    let mut cleaner = if args.report { cleaner.reporting() } else { cleaner };
    let report =
        |findings: Vec<Finding>| findings.iter().for_each(|finding| crate::note(&line(finding, args.json)));
    if io::stdin().is_terminal() {
        crate::note("reading the text from stdin; press Ctrl-D to end");
    }
    filter(&mut cleaner, &mut io::stdin().lock(), &mut io::stdout().lock(), &report)
        .map_err(|error| CliProblem::failed(format!("cannot continue: {error}")))?;
    Ok(ProgramExit::Done)
}

/// Returns the secrets in the environment of this process, for its own messages.
pub(crate) fn own() -> &'static Secrets {
    static OWN: LazyLock<Secrets> = LazyLock::new(|| Secrets::knowing(known(&[])));
    &OWN
}

/// Returns the likely credentials in the environment and the `.env` files of some directories, and
/// the keys that `windlass login` keeps.
pub(crate) fn known(roots: &[PathBuf]) -> Vec<(String, String)> {
    let own = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let paths = roots.iter().flat_map(|root| ENV_FILES.iter().map(|name| root.join(name)));
    let files: Vec<_> = paths.filter_map(|path| read(&path)).collect();
    let written = files.iter().flat_map(|text| text.lines().filter_map(assignment));
    let likely = own.chain(written).filter(|(name, value)| Secrets::is_credential(name, value));
    let stored = setup::home().map(|home| credentials::secrets(&home)).unwrap_or_default();
    likely.chain(stored).collect()
}

/// Reads a small file; one that cannot be read holds nothing to hide.
fn read(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    let fits = about.is_file() && about.len() <= MAX_ENV_FILE_BYTES;
    fits.then(|| fs::read_to_string(path).ok()).flatten()
}

/// `NAME=value`, `export NAME="value"`
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.split_once(quote));
    let value =
        quoted.map_or_else(|| value.split(" #").next().unwrap_or_default().trim_end(), |(inside, _)| inside);
    (!name.starts_with('#')).then(|| (name.trim().to_owned(), value.to_owned()))
}

fn filter(
    cleaner: &mut Cleaner,
    input: &mut impl Read,
    output: &mut impl Write,
    report: &dyn Fn(Vec<Finding>),
) -> io::Result<()> {
    let (mut piece, mut text) = (vec![0; PIECE_BYTES], Vec::new());
    loop {
        let length = match input.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        text.clear();
        if length == 0 {
            text.extend(cleaner.finish());
        } else {
            cleaner.push_to(&piece[..length], &mut text);
        }
        report(cleaner.findings());
        if let Err(error) = output.write_all(&text).and_then(|()| output.flush()) {
            // The reader closed early, as with `| head`.
            return if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
        }
        if length == 0 {
            return Ok(());
        }
    }
}

fn line(finding: &Finding, as_json: bool) -> String {
    let Finding { line, column, label, rule, why } = finding;
    if as_json {
        json!({"line": line, "column": column, "label": label, "rule": rule, "why": why}).to_string()
    } else {
        format!("{line}:{column}: {label}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_env_files_are_read_as_shells_do() {
        let read = ["A=b", "export TOKEN=\"x y\" # z", "PASS='q#1' ", "#N=1", "K=v # note", "nothing"]
            .map(assignment);
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(
            read,
            [pair("A", "b"), pair("TOKEN", "x y"), pair("PASS", "q#1"), None, pair("K", "v"), None]
        );
    }
}
