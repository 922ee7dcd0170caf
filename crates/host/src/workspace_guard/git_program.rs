//! Git's own program, which says what a settings file holds and changes it. It runs in a sandbox of
//! its own: read-only, without network, without the user's settings, on a copy.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};
use windlass_contract::{
    grant::{Limits, Quota, SandboxRules},
    host::{Command, Exit},
};
use windlass_files::DirHandle;
use windlass_sandbox::{ChildStdio, Mechanisms, PrivateTmp, Program, SandboxSpec, Zygotes, links};

use super::git_config::{GitSetting, GitSettingEdit, MAX_CONFIG_BYTES, is_plainly_harmless};
use crate::launch::SandboxedLaunch;

/// Maximum time for git to process one file.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The largest list of paths that is read: about two million of them.
const MAX_LIST_BYTES: u64 = 256 * 1024 * 1024;

/// Of how many files is remembered what they lead to.
const MAX_KNOWN: usize = 64;

/// Maximum number of changes by one command to one file that are applied.
const MAX_EDITS: usize = 256;

/// For calls in a repository: nothing is written, and nothing that its settings name is run.
const WITHOUT_PROGRAMS: &[&str] =
    &["--work-tree=.", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

/// Reads and changes settings as git does. Implemented by [`SandboxedGit`] and by a fake in tests.
pub(crate) trait GitProgram {
    /// Lists the settings of a file.
    fn list(&mut self, config: &[u8]) -> Result<Vec<GitSetting>, String>;

    /// Changes settings of a file, and returns it.
    fn edit(&mut self, config: &[u8], edits: &[GitSettingEdit]) -> Result<Vec<u8>, String>;

    /// Lists the paths in the index of a git directory, each with a zero byte after it.
    fn index_paths(&mut self, git_directory: &Path) -> Result<Vec<u8>, String>;

    /// Lists which of some paths in a working tree are not as git's index has them, as `git status
    /// -z` does.
    fn differing_paths(&mut self, top: &Path, paths: &[&str]) -> Result<Vec<u8>, String>;

    /// Returns the user's home directory.
    fn home(&self) -> Option<PathBuf>;

    /// Lists the settings of a file that may name a program, hooks or other settings. May remember
    /// them.
    fn leading_settings(&mut self, config: &[u8]) -> Vec<GitSetting> {
        self.list_leading(config)
    }

    /// Lists the settings of a file that may name a program, hooks or other settings. Git is asked
    /// only where there may be any.
    fn list_leading(&mut self, config: &[u8]) -> Vec<GitSetting> {
        if is_plainly_harmless(config) {
            return Vec::new();
        }
        // Settings that git cannot read have no effect.
        self.list(config).unwrap_or_default().into_iter().filter(|setting| !setting.is_harmless()).collect()
    }
}

/// The environment that git is started with.
#[derive(Debug)]
pub(crate) struct GitEnvironment {
    pub(crate) search_path: Option<String>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) mechanisms: Arc<Mechanisms>,
    pub(crate) temporary: Arc<PrivateTmp>,
    /// A directory that no command can reach.
    pub(crate) store: PrivateTmp,
    /// Settings that may lead elsewhere, by the content of the file.
    pub(crate) leading: Mutex<HashMap<Vec<u8>, Vec<GitSetting>>>,
}

/// Git in a sandbox.
pub(crate) struct SandboxedGit<'a> {
    pub(crate) environment: &'a GitEnvironment,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) zygotes: &'a mut Zygotes,
}

impl GitProgram for SandboxedGit<'_> {
    fn list(&mut self, config: &[u8]) -> Result<Vec<GitSetting>, String> {
        let input = self.store("list", config).map_err(|error| error.to_string())?;
        let output = self.run(&["config", "--file", "-", "--no-includes", "--list", "-z"], &input, None)?;
        GitSetting::parse_list(&output).ok_or_else(|| "git listed it in a form that is not known".to_owned())
    }

    fn edit(&mut self, config: &[u8], edits: &[GitSettingEdit]) -> Result<Vec<u8>, String> {
        if edits.len() > MAX_EDITS {
            return Err(format!("more than {MAX_EDITS} settings changed"));
        }
        if edits.is_empty() {
            return Ok(config.to_vec());
        }
        let file = self.store("edit/config", config).map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| "it is not UTF-8".to_owned());
        let path = text(file.as_os_str().as_encoded_bytes())?;
        for GitSettingEdit { key, values } in edits {
            let key = text(key)?;
            // 5 says that there was nothing to remove.
            self.run_in_place(&["config", "--file", &path, "--unset-all", &key], &file, &[0, 5])?;
            for value in values {
                let value = text(value.as_deref().unwrap_or(b"true"))?;
                self.run_in_place(&["config", "--file", &path, "--add", &key, &value], &file, &[0])?;
            }
        }
        let above = file.parent().ok_or("it has no directory")?;
        let edited =
            DirHandle::open(above).and_then(|above| above.read_file(OsStr::new("config"), MAX_CONFIG_BYTES));
        edited.map_err(|error| error.to_string())
    }

    fn index_paths(&mut self, git_directory: &Path) -> Result<Vec<u8>, String> {
        // In the git directory itself, so that its path is no argument, and as its own working
        // tree, so that all is listed.
        let arguments = [&["--git-dir=."], WITHOUT_PROGRAMS, &["ls-files", "-z"]].concat();
        self.run_there(&GitCall { arguments: &arguments, cwd: git_directory, max_bytes: MAX_LIST_BYTES })
    }

    fn differing_paths(&mut self, top: &Path, paths: &[&str]) -> Result<Vec<u8>, String> {
        let status = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules", "--"];
        let arguments =
            [&["--git-dir=.git", "--literal-pathspecs"], WITHOUT_PROGRAMS, &status, paths].concat();
        self.run_there(&GitCall { arguments: &arguments, cwd: top, max_bytes: MAX_LIST_BYTES })
    }

    fn home(&self) -> Option<PathBuf> {
        self.environment.home.clone()
    }

    fn leading_settings(&mut self, config: &[u8]) -> Vec<GitSetting> {
        let known =
            self.environment.leading.lock().unwrap_or_else(PoisonError::into_inner).get(config).cloned();
        known.unwrap_or_else(|| {
            let found = self.list_leading(config);
            let mut known = self.environment.leading.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(config.to_vec(), found.clone());
            found
        })
    }
}

/// The arguments of one run of git.
struct GitCall<'a> {
    arguments: &'a [&'a str],
    cwd: &'a Path,
    /// The most that it may print.
    max_bytes: u64,
}

impl SandboxedGit<'_> {
    /// Writes a file where only we and git's sandbox reach it.
    fn store(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.environment.store.path()?.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        File::create(&path)?.write_all(content)?;
        Ok(path)
    }

    fn run_in_place(&mut self, arguments: &[&str], file: &Path, codes: &[i32]) -> Result<(), String> {
        match self.start(&config_call(arguments), Path::new("/dev/null"), file.parent())? {
            (Exit::Code(code), _) if codes.contains(&code) => Ok(()),
            (exit, _) => Err(format!("git ended with exit code {}", exit.code())),
        }
    }

    /// Runs git in a directory of the workspace, which it may read.
    fn run_there(&mut self, call: &GitCall<'_>) -> Result<Vec<u8>, String> {
        match self.start(call, Path::new("/dev/null"), None)? {
            (Exit::Code(0), output) => Ok(output),
            (exit, _) => Err(format!("git cannot read it (exit code {})", exit.code())),
        }
    }

    fn run(&mut self, arguments: &[&str], input: &Path, writable: Option<&Path>) -> Result<Vec<u8>, String> {
        match self.start(&config_call(arguments), input, writable)? {
            (Exit::Code(0), output) => Ok(output),
            (exit, _) => Err(format!("git cannot read it (exit code {})", exit.code())),
        }
    }

    fn start(
        &mut self,
        call: &GitCall<'_>,
        input: &Path,
        writable: Option<&Path>,
    ) -> Result<(Exit, Vec<u8>), String> {
        let git =
            find_git(self.environment.search_path.as_deref(), &self.writable).ok_or("there is no git")?;
        let program = program(&git, call)?;
        let spec = SandboxSpec {
            rules: SandboxRules {
                writable: writable.map(Path::to_owned).into_iter().collect(),
                ..SandboxRules::default()
            },
            limits: limits(),
            cwd: call.cwd.to_owned(),
            home: self.environment.home.clone(),
            agent_socket: None,
            mechanisms: Arc::clone(&self.environment.mechanisms),
            temporary: Arc::clone(&self.environment.temporary),
            package_cache: None,
            hidden: Arc::default(),
            named: Vec::new(),
        };
        let sandbox = SandboxedLaunch { spec, guard: None, preview: None };
        let failed = |error: io::Error| format!("git cannot be started: {error}");
        let (reader, writer) = io::pipe().map_err(failed)?;
        let null = File::options().write(true).open("/dev/null").map_err(failed)?;
        let input = File::open(input).map_err(failed)?;
        let stdio = ChildStdio { input: input.into(), output: writer.into(), error: null.into() };
        let started = sandbox.start(&program, stdio, self.zygotes);
        let (child, _) = started.map_err(|error| format!("git cannot be started: {error:?}"))?;
        let started = child.started;
        let output = read_within(reader, TIME_LIMIT, call.max_bytes);
        if output.is_err() {
            started.kill();
        }
        let collected = started.pid.reap(0).map_err(failed)?;
        started.read_exit_report();
        let exit = started.exit_report().exit.or(collected).ok_or("git did not end")?;
        Ok((exit, output.map_err(failed)?))
    }
}

/// A call of `git config`.
fn config_call<'a>(arguments: &'a [&'a str]) -> GitCall<'a> {
    GitCall { arguments, cwd: Path::new("/"), max_bytes: 2 * MAX_CONFIG_BYTES }
}

fn program(git: &Path, call: &GitCall<'_>) -> Result<Program, String> {
    let git = git.to_str().ok_or("the path of git is not UTF-8")?;
    let argv = [git].iter().chain(call.arguments).map(ToString::to_string).collect();
    let env = [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_DIR", "/nonexistent"),
        ("LC_ALL", "C"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let command = Command { argv, cwd: None, env: BTreeMap::from(env), time_limit: None };
    Program::new(&command, &BTreeMap::new(), call.cwd).map_err(|error| error.to_string())
}

fn limits() -> Limits {
    let quota = Quota { cpu_seconds: Some(10), file_bytes: Some(MAX_CONFIG_BYTES * 2), ..Quota::default() };
    Limits { quota, ..Limits::default() }
}

/// Finds git in the search path, but not where a command could have put one.
fn find_git(search_path: Option<&str>, writable: &[PathBuf]) -> Option<PathBuf> {
    let directories = std::env::split_paths(search_path.unwrap_or("/usr/local/bin:/usr/bin:/bin"));
    directories.filter(|directory| directory.is_absolute()).find_map(|directory| {
        let git = links::follow(&directory.join("git"))?;
        let is_safe = |path: &Path| !writable.iter().any(|root| path.starts_with(root));
        let is_program = rustix::fs::access(&git.end, rustix::fs::Access::EXEC_OK).is_ok();
        let passes_safely = git.links.iter().all(|(link, _)| is_safe(link));
        (is_program && is_safe(&git.end) && passes_safely).then_some(directory.join("git"))
    })
}

/// Reads a pipe to its end, for as long and as much as it may be at most.
fn read_within(reader: io::PipeReader, time_limit: Duration, max_bytes: u64) -> io::Result<Vec<u8>> {
    let begun = std::time::Instant::now();
    let (mut output, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    let mut reader = reader;
    loop {
        let left = time_limit.checked_sub(begun.elapsed()).ok_or(io::ErrorKind::TimedOut)?;
        let timeout = rustix::time::Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        if poll(&mut [PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = reader.read(&mut buffer)?;
        if length == 0 {
            return Ok(output);
        }
        output.extend_from_slice(&buffer[..length]);
        if output.len() as u64 > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}
