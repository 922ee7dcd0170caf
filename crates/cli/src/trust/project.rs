//! The configuration in a project: the servers of `.mcp.json` at its root, and the hooks of
//! `.windlass/hooks.json`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass::{
    hooks::{HookEvent, config::HooksConfig},
    mcp::config::McpServerConfig,
};

use super::variables::{collect, expanded};
use crate::{
    mcp::ConfiguredServer,
    screen::{visible, visible_path},
    spelling::did_you_mean,
};

/// The name of the file.
const NAME: &str = ".mcp.json";

/// The file with hooks, and the directory of their scripts.
const HOOKS: &str = ".windlass/hooks.json";
const SCRIPTS: &str = ".windlass/hooks";

/// Maximum number of scripts of hooks.
const MAX_SCRIPTS: usize = 200;

/// Maximum size of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// The configuration of a project, before anyone has decided about it.
#[derive(Debug)]
pub(crate) struct ProjectConfiguration {
    /// The directory of the project, without links.
    pub(crate) root: PathBuf,
    /// The file.
    pub(crate) path: PathBuf,
    /// Digest of the content that a decision is bound to.
    pub(crate) sha256: String,
    /// Its servers, with variables as they are written.
    pub(crate) servers: BTreeMap<String, ConfiguredServer>,
    /// Its hooks.
    pub(crate) hooks: HooksConfig,
}

/// A file that cannot be used.
#[derive(Debug)]
pub(crate) struct ProjectFault {
    path: PathBuf,
    reason: String,
}

impl std::error::Error for ProjectFault {}

impl fmt::Display for ProjectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", visible_path(&self.path), self.reason)
    }
}

/// A server, as the file describes it.
#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ProjectServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}

/// The keys of a server.
const KEYS: [&str; 6] = ["type", "command", "args", "env", "url", "headers"];

impl ProjectConfiguration {
    /// Reads the file of a project; `None` if there is none.
    pub(crate) fn read(root: &Path) -> Result<Option<Self>, ProjectFault> {
        let (servers_path, hooks_path) = (root.join(NAME), root.join(HOOKS));
        let (file, hooks_file) = (optional(&servers_path)?, optional(&hooks_path)?);
        let path = match (&file, &hooks_file) {
            (None, None) => return Ok(None),
            (Some(_), _) => servers_path,
            (None, Some(_)) => hooks_path.clone(),
        };
        let fault = |reason: String| ProjectFault { path: path.clone(), reason };
        let root = fs::canonicalize(root).map_err(|error| fault(format!("cannot be read: {error}")))?;
        if root.to_str().is_none() {
            return Err(fault("the name of its directory is not UTF-8".to_owned()));
        }
        let hooks_fault = |reason: String| ProjectFault { path: hooks_path.clone(), reason };
        let mut content = file.clone().unwrap_or_default();
        let hooks = match &hooks_file {
            Some(bytes) => {
                content.extend(hooks_content(&root, bytes).map_err(hooks_fault)?);
                parse_hooks(bytes).map_err(hooks_fault)?
            }
            None => HooksConfig::default(),
        };
        let sha256 = digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let servers =
            file.map_or_else(|| Ok(BTreeMap::new()), |bytes| parse(&bytes, &root)).map_err(fault)?;
        Ok(Some(Self { root, path, sha256, servers, hooks }))
    }

    /// Returns the file with its hooks.
    pub(crate) fn hooks_path(&self) -> PathBuf {
        self.root.join(HOOKS)
    }

    /// Returns the variables that its servers get.
    pub(crate) fn variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for server in self.servers.values() {
            let mut config = server.config.clone();
            // A visit without a change cannot fail.
            let _visited = each_text(&mut config, &mut |text| {
                collect(text, &mut names);
                Ok(())
            });
        }
        names
    }

    /// Returns the servers with the values of variables. One that needs a variable that is not set
    /// is left out, with the reason.
    pub(crate) fn expanded(
        self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> (BTreeMap<String, ConfiguredServer>, Vec<String>) {
        let (mut usable, mut problems) = (BTreeMap::new(), Vec::new());
        for (name, mut server) in self.servers {
            let replaced = each_text(&mut server.config, &mut |text| {
                *text = expanded(text, variable)?;
                Ok(())
            });
            match replaced {
                Ok(()) => drop(usable.insert(name, server)),
                Err(reason) => {
                    problems.push(format!("MCP server `{}` of {NAME} is left out: {reason}", visible(&name)));
                }
            }
        }
        (usable, problems)
    }
}

/// Visits every text in which variables are replaced.
fn each_text(
    config: &mut McpServerConfig,
    visit: &mut dyn FnMut(&mut String) -> Result<(), String>,
) -> Result<(), String> {
    let texts = config.command.iter_mut().chain(&mut config.args).chain(config.env.values_mut());
    let mut texts = texts.chain(&mut config.url).chain(config.http_headers.values_mut());
    texts.try_for_each(visit)
}

/// Reads a file that need not exist.
fn optional(path: &Path) -> Result<Option<Vec<u8>>, ProjectFault> {
    match whole(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(ProjectFault { path: path.to_owned(), reason: format!("cannot be read: {error}") }),
    }
}

/// Returns everything that a decision about hooks is bound to: the file, and the scripts beside it.
fn hooks_content(root: &Path, file: &[u8]) -> Result<Vec<u8>, String> {
    let mut content = part("hooks.json", file);
    let entries = match fs::read_dir(root.join(SCRIPTS)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(content),
        Err(error) => return Err(format!("its scripts cannot be read: {error}")),
    };
    let mut scripts = Vec::new();
    for entry in entries {
        scripts.push(entry.map_err(|error| format!("its scripts cannot be read: {error}"))?.path());
        if scripts.len() > MAX_SCRIPTS {
            return Err(format!("`{SCRIPTS}` has more than {MAX_SCRIPTS} files"));
        }
    }
    scripts.sort();
    for path in scripts {
        let bytes =
            whole(&path).map_err(|error| format!("{} cannot be read: {error}", visible_path(&path)))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        content.extend(part(&name, &bytes));
    }
    Ok(content)
}

/// Returns a file so that no other files have the same content together.
fn part(name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("\0{}:{name}\0{}:", name.len(), bytes.len());
    [head.as_bytes(), bytes].concat()
}

/// The file with hooks, in the form that other agents use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HooksFile {
    hooks: HooksConfig,
}

/// Reads the hooks of a project. They run in the default sandbox: a repository cannot allow its
/// hooks more.
fn parse_hooks(bytes: &[u8]) -> Result<HooksConfig, String> {
    let HooksFile { hooks } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    hooks.check().map_err(|error| error.to_string())?;
    let groups = HookEvent::ALL.iter().flat_map(|event| hooks.groups(*event));
    let mut handlers = groups.flat_map(|group| &group.hooks);
    if let Some(hook) = handlers.find(|hook| !hook.is_confined_as_usual()) {
        return Err(format!(
            "the hook `{}` sets `sandbox`, `network`, `writable` or `env`; only your own configuration can do that",
            visible(&hook.title())
        ));
    }
    Ok(hooks)
}

/// Reads a regular file of limited size, without waiting for the writer of a pipe.
fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

fn parse(bytes: &[u8], root: &Path) -> Result<BTreeMap<String, ConfiguredServer>, String> {
    let file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let file = file.as_object().ok_or("must be an object")?;
    known(file, &["mcpServers"], "")?;
    let servers =
        file.get("mcpServers").and_then(Value::as_object).ok_or("must have an object `mcpServers`")?;
    let source = visible_path(&root.join(NAME));
    let server = |(name, value): (&String, &Value)| {
        let config = server(name, value, root)?;
        config.check(name).map_err(|error| error.to_string())?;
        Ok((name.clone(), ConfiguredServer { config, source: source.clone() }))
    };
    servers.iter().map(server).collect()
}

/// Makes the configuration of one server. It runs in the root of the project, in the default
/// sandbox: a repository cannot allow its servers more.
fn server(name: &str, value: &Value, root: &Path) -> Result<McpServerConfig, String> {
    let place = format!("mcpServers.{}", visible(name));
    let keys = value.as_object().ok_or_else(|| format!("`{place}` must be an object"))?;
    known(keys, &KEYS, &format!("{place}."))?;
    let server = ProjectServer::deserialize(value).map_err(|error| format!("`{place}`: {error}"))?;
    let is_program = server.command.is_some();
    match server.kind.as_deref() {
        None => {}
        Some("stdio") if is_program => {}
        Some("http" | "streamable-http" | "streamableHttp") if !is_program => {}
        Some("sse") => return Err(format!("`{place}`: the transport `sse` is not supported; use `http`")),
        Some(kind) => {
            return Err(format!("`{place}.type`: `{}` does not fit the other keys", visible(kind)));
        }
    }
    Ok(McpServerConfig {
        cwd: is_program.then(|| root.to_owned()),
        command: server.command,
        args: server.args,
        env: server.env,
        url: server.url,
        http_headers: server.headers,
        ..McpServerConfig::default()
    })
}

/// Checks that an object has no other keys.
fn known(object: &Map<String, Value>, keys: &[&str], place: &str) -> Result<(), String> {
    let Some(key) = object.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let list = || format!("the keys are {}", keys.join(", "));
    let hint = did_you_mean(key, keys.iter().copied()).unwrap_or_else(list);
    Err(format!("unknown key `{place}{}`; {hint}", visible(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<BTreeMap<String, ConfiguredServer>, String> {
        parse(text.as_bytes(), Path::new("/project"))
    }

    #[test]
    fn a_server_of_a_project_has_the_default_sandbox() {
        let servers = parsed(
            r#"{"mcpServers": {
                "a": {"command": "x", "args": ["y"], "env": {"Z": "1"}},
                "b": {"type": "http", "url": "https://h/mcp", "headers": {"k": "v"}}
            }}"#,
        );
        let servers = servers.unwrap();
        let expected = McpServerConfig {
            command: Some("x".to_owned()),
            args: vec!["y".to_owned()],
            env: [("Z".to_owned(), "1".to_owned())].into(),
            cwd: Some("/project".into()),
            ..McpServerConfig::default()
        };
        assert_eq!(servers["a"].config, expected);
        let expected = McpServerConfig {
            url: Some("https://h/mcp".to_owned()),
            http_headers: [("k".to_owned(), "v".to_owned())].into(),
            ..McpServerConfig::default()
        };
        assert_eq!(servers["b"].config, expected);
    }

    #[test]
    fn a_file_with_an_unknown_key_or_a_wrong_value_is_an_error() {
        for (text, said) in [
            ("{", "EOF"),
            ("[]", "must be an object"),
            (r#"{"mcpservers": {}}"#, "unknown key `mcpservers`; did you mean `mcpServers`?"),
            (
                r#"{"mcpServers": {"a": {"comand": "x"}}}"#,
                "unknown key `mcpServers.a.comand`; did you mean `command`?",
            ),
            (
                r#"{"mcpServers": {"a": {"command": "x", "sandbox": "none"}}}"#,
                "unknown key `mcpServers.a.sandbox`",
            ),
            (r#"{"mcpServers": {"a": {"command": 1}}}"#, "`mcpServers.a`: invalid type"),
            (r#"{"mcpServers": {"a": {}}}"#, "needs `command` or `url`"),
            (r#"{"mcpServers": {"a": {"command": "x", "url": "http://h"}}}"#, "excludes `url`"),
            (r#"{"mcpServers": {"a": {"type": "sse", "url": "http://h"}}}"#, "`sse` is not supported"),
            (r#"{"mcpServers": {"a": {"type": "http", "command": "x"}}}"#, "does not fit"),
            (r#"{"mcpServers": {"a b": {"command": "x"}}}"#, "only letters, digits"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_server_whose_variable_is_not_set_is_left_out_and_the_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let text =
            r#"{"mcpServers": {"a": {"command": "${NO}"}, "b": {"command": "x", "env": {"T": "${YES}"}}}}"#;
        fs::write(directory.path().join(NAME), text).unwrap();
        let project = ProjectConfiguration::read(directory.path()).unwrap().unwrap();
        assert_eq!(project.variables().into_iter().collect::<Vec<_>>(), ["NO", "YES"]);
        let (servers, problems) = project.expanded(&|name| (name == "YES").then(|| "1".to_owned()));
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(servers["b"].config.env["T"], "1");
        assert_eq!(problems, ["MCP server `a` of .mcp.json is left out: the variable `NO` is not set"]);
    }

    #[test]
    fn a_pipe_or_a_huge_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(ProjectConfiguration::read(directory.path()).unwrap().is_none());
        fs::create_dir(directory.path().join(NAME)).unwrap();
        assert!(ProjectConfiguration::read(directory.path()).is_err());
        fs::remove_dir(directory.path().join(NAME)).unwrap();
        fs::File::create(directory.path().join(NAME)).unwrap().set_len(MAX_BYTES + 1).unwrap();
        let error = ProjectConfiguration::read(directory.path()).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }
}
