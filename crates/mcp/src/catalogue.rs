//! The catalogue: lists of tools saved between sessions, so that a session knows the tools of a
//! server before it has started; and the failure of the last start, for lists of servers.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    config::McpServerConfig,
    listing::ServerListing,
    state_file::{read_state, replace_state},
    status::ServerState,
};

/// Version of the file format. A file with another one counts as absent.
const FORMAT: u32 = 1;
/// Maximum size of one saved listing.
const MAX_LISTING_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of files. Beyond it, the oldest are removed.
const MAX_FILES: usize = 200;
/// Maximum number of bytes of a server's name in a file name.
const MAX_NAME_BYTES: usize = 80;

/// The saved lists of tools: one file per server. It is found by the name of the server and by
/// everything that decides which program or address it is. A file that is damaged, of another
/// server or of another user counts as absent: the server is asked again.
#[derive(Debug, Clone)]
pub struct Catalogue {
    directory: PathBuf,
}

impl Catalogue {
    /// Opens the catalogue below a directory. Nothing is created before the first save.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into().join("catalogue") }
    }

    /// Returns the saved listing of a server. Reads one small file.
    pub fn load(&self, server: &str, config: &McpServerConfig) -> Option<ServerListing> {
        let key = server_key(server, config);
        let path = self.path(server, &key);
        let bytes = match read_state(&path, MAX_LISTING_BYTES as u64) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::debug!(server, %error, "the saved list of tools cannot be read");
                return None;
            }
        };
        match serde_json::from_slice::<SavedListing>(&bytes) {
            Ok(saved) if saved.format == FORMAT && saved.key == key => Some(saved.listing),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(server, %error, "the saved list of tools is damaged");
                None
            }
        }
    }

    /// Saves the listing of a server. One that is too large is not saved.
    pub fn save(&self, server: &str, config: &McpServerConfig, listing: &ServerListing) -> io::Result<()> {
        let key = server_key(server, config);
        let saved = SavedListingRef { format: FORMAT, server, key: &key, listing };
        let bytes = serde_json::to_vec(&saved)?;
        if bytes.len() > MAX_LISTING_BYTES {
            let kind = io::ErrorKind::FileTooLarge;
            return Err(io::Error::new(kind, "the list of tools is too large to be saved"));
        }
        replace_state(&self.path(server, &key), &bytes)?;
        self.clear_failure(server, config)?;
        self.prune()
    }

    /// Returns the state in which the last start of a server has left it. A start with another
    /// configuration does not count.
    pub fn last_state(&self, server: &str, config: &McpServerConfig) -> ServerState {
        let path = self.path(server, &start_key(server, config));
        let saved = read_state(&path, MAX_LISTING_BYTES as u64).ok().flatten();
        saved.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Saves the state of a server whose start has failed.
    pub fn save_failure(
        &self,
        server: &str,
        config: &McpServerConfig,
        state: &ServerState,
    ) -> io::Result<()> {
        replace_state(&self.path(server, &start_key(server, config)), &serde_json::to_vec(state)?)?;
        self.prune()
    }

    /// Forgets the failure of the last start, such as after a login.
    pub fn clear_failure(&self, server: &str, config: &McpServerConfig) -> io::Result<()> {
        remove_if_there(&self.path(server, &start_key(server, config)))
    }

    /// Removes the saved listing of a server, such as after a logout.
    pub fn remove(&self, server: &str, config: &McpServerConfig) -> io::Result<()> {
        remove_if_there(&self.path(server, &server_key(server, config)))
    }

    fn path(&self, server: &str, key: &str) -> PathBuf {
        // A name that did not pass the check of the configuration must not leave the directory.
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name: String = server.chars().filter(is_plain).take(MAX_NAME_BYTES).collect();
        self.directory.join(format!("{name}-{}.json", &key[..16]))
    }

    /// Removes the oldest listings: those of servers that are no longer configured.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            files.push((modified.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
        files.sort();
        let surplus = files.len().saturating_sub(MAX_FILES);
        for (_, path) in files.into_iter().take(surplus) {
            remove_if_there(&path)?;
        }
        Ok(())
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[derive(Deserialize)]
struct SavedListing {
    format: u32,
    key: String,
    listing: ServerListing,
}

#[derive(Serialize)]
struct SavedListingRef<'a> {
    format: u32,
    /// For people who look into the file.
    server: &'a str,
    key: &'a str,
    listing: &'a ServerListing,
}

/// Returns the hash of what decides which program or address a server is, and for whom it works.
/// Variables and headers count by name: their values are secrets.
pub(crate) fn server_key(server: &str, config: &McpServerConfig) -> String {
    let described = json!([
        server,
        config.command,
        config.args,
        config.env.keys().collect::<Vec<_>>(),
        config.env_vars,
        config.cwd,
        config.url,
        config.unix_socket,
        config.bearer_token_env_var,
        config.http_headers.keys().collect::<Vec<_>>(),
        config.env_http_headers,
        config.scopes,
        config.oauth_client_id,
    ]);
    hex(digest(&SHA256, described.to_string().as_bytes()).as_ref())
}

/// Returns the hash of what decides how a start ends: also the confinement and the time.
fn start_key(server: &str, config: &McpServerConfig) -> String {
    let limits = (config.profile(), config.startup_timeout());
    let described = format!("start {} {limits:?}", server_key(server, config));
    hex(digest(&SHA256, described.as_bytes()).as_ref())
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use windlass_contract::remote::ToolHints;

    use super::*;
    use crate::definition::RemoteToolDefinition;

    fn listing(tool: &str) -> ServerListing {
        let input_schema = json!({"type": "object"}).as_object().unwrap().clone();
        ServerListing {
            protocol_version: "2026-07-28".into(),
            server_name: "x".into(),
            server_version: "1.2.3".into(),
            instructions: None,
            has_resources: true,
            has_prompts: false,
            tools: vec![RemoteToolDefinition {
                name: tool.into(),
                title: None,
                description: Some("does it".into()),
                input_schema,
                output_schema: None,
                hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
            }],
            unusable: Vec::new(),
            listed_at: SystemTime::UNIX_EPOCH,
            fresh_for: None,
            is_private: false,
        }
    }

    fn config(json: serde_json::Value) -> McpServerConfig {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_failure_is_kept_until_the_server_starts_or_is_configured_differently() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let confined = config(json!({"command": "npx"}));
        let connected = config(json!({"command": "npx", "network": true}));
        let failed = ServerState::Failed { error: "e".into(), stderr: "s".into(), denials: vec!["d".into()] };
        catalogue.save_failure("a", &confined, &failed).unwrap();
        assert_eq!(catalogue.last_state("a", &confined), failed);
        for (server, config) in [("a", &connected), ("b", &confined)] {
            assert_eq!(catalogue.last_state(server, config), ServerState::Known);
        }
        catalogue.save("a", &confined, &listing("one")).unwrap();
        assert_eq!(catalogue.last_state("a", &confined), ServerState::Known);
    }

    #[test]
    fn a_saved_listing_is_found_again_by_the_same_server_only() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let npx = config(json!({"command": "npx", "args": ["x"], "env": {"TOKEN": "s3cret-value"}}));
        assert_eq!(catalogue.load("a", &npx), None);
        catalogue.save("a", &npx, &listing("one")).unwrap();
        assert_eq!(catalogue.load("a", &npx), Some(listing("one")));
        let rotated = config(json!({"command": "npx", "args": ["x"], "env": {"TOKEN": "other"}}));
        assert_eq!(catalogue.load("a", &rotated), Some(listing("one")), "values do not count");
        for other in [
            json!({"command": "npx", "args": ["y"], "env": {"TOKEN": ""}}),
            json!({"command": "npx", "args": ["x"], "env": {"OTHER": ""}}),
            json!({"command": "npx", "args": ["x"], "env": {"TOKEN": ""}, "cwd": "/"}),
            json!({"url": "http://localhost"}),
        ] {
            assert_eq!(catalogue.load("a", &config(other.clone())), None, "{other}");
        }
        assert_eq!(catalogue.load("b", &npx), None);
        catalogue.remove("a", &npx).unwrap();
        catalogue.remove("a", &npx).unwrap();
        assert_eq!(catalogue.load("a", &npx), None);
    }

    #[test]
    fn a_saved_listing_is_private_and_holds_no_secrets() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let secrets = config(json!({
            "command": "srv", "args": ["--key", "s3cret-arg"], "env": {"TOKEN": "s3cret-value"},
        }));
        catalogue.save("a", &secrets, &listing("one")).unwrap();
        let file = fs::read_dir(home.path().join("catalogue")).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("does it") && !text.contains("s3cret"), "{text}");
    }

    #[test]
    fn a_damaged_or_foreign_file_counts_as_absent() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let (npx, uvx) = (config(json!({"command": "npx"})), config(json!({"command": "uvx"})));
        catalogue.save("a", &npx, &listing("one")).unwrap();
        let path = catalogue.path("a", &server_key("a", &npx));
        let whole = fs::read(&path).unwrap();
        fs::copy(&path, catalogue.path("a", &server_key("a", &uvx))).unwrap();
        assert_eq!(catalogue.load("a", &uvx), None, "the file names another server");
        let newer = String::from_utf8(whole.clone()).unwrap().replacen("\"format\":1", "\"format\":2", 1);
        let large = vec![b' '; MAX_LISTING_BYTES + 1];
        for bytes in [&b""[..], b"{}", b"\xff\xfe", &whole[..whole.len() - 2], newer.as_bytes(), &large] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(catalogue.load("a", &npx), None);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(catalogue.load("a", &npx), None);
    }

    #[test]
    fn a_listing_that_is_too_large_is_not_saved() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let npx = config(json!({"command": "npx"}));
        let mut large = listing("one");
        large.instructions = Some("x".repeat(MAX_LISTING_BYTES));
        assert!(catalogue.save("a", &npx, &large).is_err());
        assert_eq!(catalogue.load("a", &npx), None);
    }

    #[test]
    fn old_listings_are_removed_and_names_stay_in_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::open(home.path());
        let npx = config(json!({"command": "npx"}));
        for number in 0..MAX_FILES + 3 {
            catalogue.save(&format!("../s{number}"), &npx, &listing("one")).unwrap();
        }
        assert_eq!(fs::read_dir(home.path().join("catalogue")).unwrap().count(), MAX_FILES);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }
}
