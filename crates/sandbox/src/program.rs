//! A command as `execve` takes it: checked and written as C strings before anything is started.

use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};
#[cfg(not(target_os = "linux"))]
use std::{ffi::c_char, ptr};

use windlass_contract::{
    effects::CommandLine,
    host::{Command, HostError},
};

mod shell_bypass;

/// Search path if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program with its arguments, environment and directory.
#[derive(Debug, Clone)]
pub struct Program {
    /// The paths it may have, in the order of `PATH`. The child tries them, so that nothing can
    /// change in between.
    pub(crate) candidates: Vec<CString>,
    /// Its name and arguments.
    pub(crate) argv: Vec<CString>,
    /// The program that the shell would become with its line: tried first.
    pub(crate) bypass: Option<ShellBypass>,
    /// Its variables, as `NAME=value`.
    pub(crate) env: Vec<CString>,
    /// Its working directory.
    pub(crate) cwd: CString,
    name: String,
    directory: PathBuf,
}

/// A program to be executed without the shell that was given its line.
#[derive(Debug, Clone)]
pub(crate) struct ShellBypass {
    pub(crate) candidates: Vec<CString>,
    pub(crate) argv: Vec<CString>,
}

impl Program {
    /// Checks a command. Its own variables override those of the environment; its directory is
    /// relative to `base`.
    pub fn new(
        command: &Command,
        environment: &BTreeMap<String, String>,
        base: &Path,
    ) -> Result<Self, HostError> {
        let name = command.argv.first().filter(|name| !name.is_empty()).ok_or(HostError::EmptyCommand)?;
        let inherited = environment.iter().filter(|(key, _)| !command.env.contains_key(*key));
        let variables: Vec<_> = inherited.chain(&command.env).collect();
        let path = variables.iter().find(|(key, _)| *key == "PATH").map_or(DEFAULT_PATH, |(_, value)| value);
        let directory = command.cwd.as_ref().map_or_else(|| base.to_owned(), |cwd| base.join(cwd));
        Ok(Self {
            candidates: candidates(name, path).map(c_string).collect::<Result<_, _>>()?,
            argv: command.argv.iter().map(|word| c_string(word.as_str())).collect::<Result<_, _>>()?,
            env: variables
                .iter()
                .map(|(key, value)| c_string(format!("{key}={value}")))
                .collect::<Result<_, _>>()?,
            cwd: c_string(directory.as_os_str().as_bytes())?,
            bypass: None,
            name: name.clone(),
            directory,
        })
    }

    /// Executes the program of a simple shell line without the shell, where the shell would only
    /// become that program. If it cannot be executed, the shell is, and says why.
    pub fn with_shell_bypass(self, command: &Command) -> Result<Self, HostError> {
        let variable = |variable: &CString| variable.to_string_lossy().split('=').next().map(str::to_owned);
        if self.env.iter().filter_map(variable).any(|name| shell_bypass::changes_shell(&name)) {
            return Ok(self);
        }
        let Some(words) = shell_bypass::simple_words(&command.argv) else { return Ok(self) };
        let path = self.env.iter().find_map(|set| set.to_str().ok()?.strip_prefix("PATH="));
        let (name, path) =
            (words.first().map(String::as_str).unwrap_or_default(), path.unwrap_or(DEFAULT_PATH));
        // A shell would expand it to the home directory.
        if path.split(':').any(|directory| directory.starts_with('~')) {
            return Ok(self);
        }
        let found = candidates(name, path).map(c_string).collect::<Result<_, _>>()?;
        let argv = words.iter().map(|word| c_string(word.as_str())).collect::<Result<_, _>>()?;
        let place = BTreeMap::from([("PWD", Some(self.directory.to_string_lossy().into_owned()))]);
        // A path with a NUL byte fails as working directory, too.
        let placed = self.with(&place).map_err(|_| HostError::Nul)?;
        Ok(Self { bypass: Some(ShellBypass { candidates: found, argv }), ..placed })
    }

    /// Returns the command on one short line, for display. Of a shell command, just its line.
    pub fn line(&self) -> String {
        /// Maximum length of a displayed command.
        const MAX_CHARS: usize = 72;
        let words: Vec<_> = self.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let whole = match &words[..] {
            [_, flag, script] if matches!(flag.as_str(), "-c" | "-lc") => script.trim().to_owned(),
            _ => CommandLine { argv: words, cwd: None }.display(),
        };
        let shown: String = whole.chars().take_while(|char| !char.is_control()).take(MAX_CHARS).collect();
        if shown.len() < whole.len() { format!("{shown} …") } else { shown }
    }

    /// Returns its arguments.
    pub fn arguments(&self) -> Vec<String> {
        self.argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Returns the absolute paths that its command line names: the program, its directory, and
    /// arguments such as `/tmp/a` and `--file=/tmp/a`.
    pub fn named_paths(&self) -> Vec<PathBuf> {
        let candidates = self.candidates.iter().map(|path| PathBuf::from(OsStr::from_bytes(path.as_bytes())));
        let program = candidates.into_iter().find(|path| path.is_file());
        let words = self.arguments();
        let values =
            words.iter().flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, v)| v)]);
        let values = values.flatten().map(PathBuf::from);
        let named = program.into_iter().chain([self.directory.clone()]).chain(values);
        named.filter(|path| path.is_absolute()).collect()
    }

    /// Returns whether an environment variable is set.
    pub(crate) fn has(&self, variable: &str) -> bool {
        let values = self.env.iter().filter_map(|set| set.as_bytes().strip_prefix(variable.as_bytes()));
        values.into_iter().any(|value| value.starts_with(b"="))
    }

    /// Returns the value of a variable that is set for it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value =
            self.env.iter().find_map(|set| set.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Returns the program with some variables set or removed.
    pub(crate) fn with(&self, changes: &BTreeMap<&str, Option<String>>) -> io::Result<Self> {
        let name =
            |variable: &CString| variable.as_bytes().split(|byte| *byte == b'=').next().map(<[u8]>::to_vec);
        let kept = self.env.iter().filter(|variable| {
            name(variable).is_none_or(|name| !changes.keys().any(|change| change.as_bytes() == name))
        });
        let set = changes.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
        let set = set.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { env: kept.cloned().chain(set).collect(), ..self.clone() })
    }

    /// Returns the program run by another one, such as `sandbox-exec`, with these arguments first.
    #[cfg(target_os = "macos")]
    pub(crate) fn wrapped_by(&self, program: &str, arguments: &[String]) -> io::Result<Self> {
        let before = [program.to_owned()].into_iter().chain(arguments.iter().cloned());
        let argv = before.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let argv = argv.into_iter().chain(self.argv.iter().cloned()).collect();
        Ok(Self { candidates: vec![CString::new(program)?], argv, bypass: None, ..self.clone() })
    }

    /// Returns the strings as arrays of pointers that end in null, valid as long as the program.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn pointers(&self) -> ProgramPointers {
        let list = |strings: &[CString]| strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect();
        let bypass =
            self.bypass.as_ref().map_or((&[][..], &[][..]), |bypass| (&bypass.candidates, &bypass.argv));
        let attempts = [bypass, (&self.candidates, &self.argv)];
        ProgramPointers {
            attempts: attempts.map(|(candidates, argv)| (list(candidates), list(argv))),
            env: list(&self.env),
        }
    }

    /// Returns the program as the command named it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the working directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The strings of a [`Program`] as arrays of pointers that end in null.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct ProgramPointers {
    /// The candidates and arguments of each attempt.
    pub(crate) attempts: [(Vec<*const c_char>, Vec<*const c_char>); 2],
    pub(crate) env: Vec<*const c_char>,
}

/// Returns the paths that a program may have. A name with a slash is a path; any other is looked up
/// in `PATH`, where an empty entry means the working directory.
fn candidates<'a>(name: &'a str, path: &'a str) -> impl Iterator<Item = String> + 'a {
    let is_path = name.contains('/');
    let own = is_path.then(|| name.to_owned());
    let found = path.split(':').filter(move |_| !is_path).map(move |directory| match directory {
        "" => format!("./{name}"),
        directory => format!("{directory}/{name}"),
    });
    own.into_iter().chain(found)
}

fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, HostError> {
    CString::new(bytes).map_err(|_| HostError::Nul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str]) -> Command {
        Command {
            argv: argv.iter().map(ToString::to_string).collect(),
            cwd: None,
            env: BTreeMap::new(),
            time_limit: None,
        }
    }

    fn text(strings: &[CString]) -> Vec<&str> {
        strings.iter().map(|string| string.to_str().unwrap()).collect()
    }

    #[test]
    fn a_bare_name_is_looked_for_in_the_childs_path() {
        let environment = BTreeMap::from([("PATH".to_owned(), "/a::/b".to_owned())]);
        let program = Program::new(&command(&["x", "y"]), &environment, Path::new("/w")).unwrap();
        assert_eq!(text(&program.candidates), ["/a/x", "./x", "/b/x"]);
        assert_eq!(text(&program.argv), ["x", "y"]);
    }

    #[test]
    fn a_name_with_a_slash_is_a_path() {
        let program = Program::new(&command(&["bin/x"]), &BTreeMap::new(), Path::new("/w")).unwrap();
        assert_eq!(text(&program.candidates), ["bin/x"]);
    }

    #[test]
    fn the_commands_own_variables_win_and_its_directory_starts_at_the_grants() {
        let environment =
            BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
        let mut command = command(&["x"]);
        command.env.insert("A".to_owned(), "3".to_owned());
        command.cwd = Some("sub".into());
        let program = Program::new(&command, &environment, Path::new("/w")).unwrap();
        assert_eq!(text(&program.env), ["B=2", "A=3"]);
        assert_eq!(program.cwd.to_str().unwrap(), "/w/sub");
    }

    #[test]
    fn nul_bytes_are_refused_wherever_they_are() {
        let environment = BTreeMap::from([("A".to_owned(), "x\0".to_owned())]);
        let base = Path::new("/w");
        assert!(matches!(Program::new(&command(&["x"]), &environment, base), Err(HostError::Nul)));
        assert!(matches!(Program::new(&command(&["x\0"]), &BTreeMap::new(), base), Err(HostError::Nul)));
        assert!(matches!(Program::new(&command(&["x", "\0"]), &BTreeMap::new(), base), Err(HostError::Nul)));
        let mut command = command(&["x"]);
        command.cwd = Some("a\0b".into());
        assert!(matches!(Program::new(&command, &BTreeMap::new(), base), Err(HostError::Nul)));
    }

    #[test]
    fn a_command_is_displayed_on_one_short_line() {
        let line =
            |argv: &[&str]| Program::new(&command(argv), &BTreeMap::new(), Path::new("/w")).unwrap().line();
        assert_eq!(line(&["/bin/sh", "-c", "npm run dev "]), "npm run dev");
        assert_eq!(line(&["sleep", "1 0"]), "sleep '1 0'");
        assert_eq!(line(&["bash", "-lc", "cd a\nrm b"]), "cd a …");
        assert_eq!(line(&["x", &"é".repeat(100)]).chars().count(), 74);
    }

    #[test]
    fn a_command_without_a_program_is_refused() {
        for argv in [&[][..], &[""][..]] {
            let result = Program::new(&command(argv), &BTreeMap::new(), Path::new("/w"));
            assert!(matches!(result, Err(HostError::EmptyCommand)));
        }
    }
}
