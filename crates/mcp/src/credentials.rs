//! The OAuth credentials of servers: one file per server, private to the user.
//!
//! A file holds the login of one resource: its issuer, the client, and the tokens, which are used
//! together or not at all. A lock beside it is shared by all processes. A file that cannot be read
//! is an error for its server; it is never replaced without the user's doing.

use std::{
    fmt, fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use reqwest::Url;
use ring::digest::{SHA256, digest};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::state_file::{read_state, replace_state};

/// Maximum size of a file. Tokens of a few KiB are common; servers cannot fill the disk.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Time between two attempts to get a lock. A file lock has no event to wait for.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// Version of the format.
const FORMAT: u32 = 1;

/// Text that is never shown. Serializing writes it, because a file must keep it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Returns the text, to be sent and never shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// The login of a user at one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLogin {
    pub(crate) format: u32,
    /// Address of the server.
    pub resource: String,
    /// Issuer of the tokens. They are sent to no other authorization server. `None` if the
    /// server has no metadata; its own origin is then the authorization server.
    pub issuer: Option<String>,
    /// Client to which the tokens were issued.
    pub client_id: String,
    /// Secret of the client, if its registration gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<SecretText>,
    /// Scopes that were granted.
    pub scopes: Vec<String>,
    /// Scopes that the server has demanded since, for the next login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demanded_scopes: Vec<String>,
    /// Access token.
    pub access_token: SecretText,
    /// Refresh token, unless there is none or it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<SecretText>,
    /// Time of the grant, in seconds since 1970.
    pub received_at: u64,
    /// Lifetime of the access token in seconds, if the server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    /// Address at which tokens are revoked, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
}

impl StoredLogin {
    /// Creates the login of a client, to be completed by the tokens.
    pub(crate) fn new(resource: &str, client_id: String, access_token: SecretText) -> Self {
        Self {
            format: FORMAT,
            resource: resource.to_owned(),
            issuer: None,
            client_id,
            client_secret: None,
            scopes: Vec::new(),
            demanded_scopes: Vec::new(),
            access_token,
            refresh_token: None,
            received_at: unix_seconds(),
            expires_in: None,
            revocation_endpoint: None,
        }
    }

    /// Returns the end of the access token in seconds since 1970, if it is known.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_in.map(|seconds| self.received_at.saturating_add(seconds))
    }

    /// Returns true if the access token is valid for longer than `margin`.
    pub fn is_valid_for(&self, margin: Duration) -> bool {
        let until = unix_seconds().saturating_add(margin.as_secs());
        self.expires_at().is_none_or(|expires_at| expires_at > until)
    }
}

/// Returns the time in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The reason why the credentials of a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The file cannot be read.
    #[error("cannot read the credentials `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file has another content than credentials of this server.
    #[error("the credentials `{}` are damaged ({reason}); delete the file and log in again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The problem, without any content of the file.
        reason: &'static str,
    },
    /// The file cannot be written.
    #[error("cannot write the credentials `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process holds the lock for too long.
    #[error("another process has locked the credentials `{}` for too long", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The address of the server is not usable.
    #[error("`{url}` is not the address of a server")]
    Address {
        /// The address.
        url: String,
    },
}

/// The files of all logins.
#[derive(Debug, Clone)]
pub struct LoginStore {
    directory: PathBuf,
}

impl LoginStore {
    /// Opens the store below the directory of a pool. Nothing is created before the first login.
    pub fn new(pool_directory: &Path) -> Self {
        Self { directory: pool_directory.join("credentials") }
    }

    /// Returns the login at a server, or `None` if there is none.
    pub async fn load(&self, resource: &str) -> Result<Option<StoredLogin>, CredentialError> {
        let path = self.path(resource, "json")?;
        let resource = resource.to_owned();
        blocking(path.clone(), move || load(&path, &resource)).await
    }

    /// Replaces the login at its server. The caller holds the lock.
    pub async fn save(&self, _lock: &LoginLock, login: StoredLogin) -> Result<(), CredentialError> {
        let path = self.path(&login.resource, "json")?;
        blocking(path.clone(), move || {
            let wrong = |error| CredentialError::Write { path: path.clone(), source: error };
            let bytes = serde_json::to_vec_pretty(&login).map_err(|error| wrong(error.into()))?;
            replace_state(&path, &bytes).map_err(wrong)
        })
        .await
    }

    /// Deletes the login at a server. The caller holds the lock.
    pub async fn delete(&self, _lock: &LoginLock, resource: &str) -> Result<(), CredentialError> {
        let path = self.path(resource, "json")?;
        blocking(path.clone(), move || match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|source| CredentialError::Write { path, source }),
        })
        .await
    }

    /// Waits for the lock of a server, which is shared by all processes.
    pub async fn lock(&self, resource: &str, limit: Duration) -> Result<LoginLock, CredentialError> {
        let path = self.path(resource, "lock")?;
        let deadline = Instant::now() + limit;
        let file = blocking(path.clone(), {
            let path = path.clone();
            move || open_lock(&path).map_err(|source| CredentialError::Write { path, source })
        })
        .await?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(LoginLock { _file: file }),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(CredentialError::Write { path, source: error.into() }),
            }
            if Instant::now() >= deadline {
                return Err(CredentialError::Locked { path });
            }
            tokio::time::sleep(LOCK_INTERVAL).await;
        }
    }

    /// Returns the file of a server: its host for people, a digest of its address to be unique.
    fn path(&self, resource: &str, extension: &str) -> Result<PathBuf, CredentialError> {
        let wrong = || CredentialError::Address { url: resource.to_owned() };
        let url = Url::parse(resource).map_err(|_| wrong())?;
        let host = url.host_str().ok_or_else(wrong)?;
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let host: String = host.chars().filter(is_plain).take(64).collect();
        let digest = digest(&SHA256, resource.as_bytes());
        let digest: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Ok(self.directory.join(format!("{host}-{digest}.{extension}")))
    }
}

/// The exclusive right to change the login at one server. Dropping it releases the lock.
#[derive(Debug)]
pub struct LoginLock {
    _file: fs::File,
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, CredentialError> + Send + 'static,
) -> Result<T, CredentialError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(CredentialError::Read { path, source: io::Error::other(error) }),
    }
}

fn load(path: &Path, resource: &str) -> Result<Option<StoredLogin>, CredentialError> {
    let read = |source| CredentialError::Read { path: path.to_owned(), source };
    let damaged = |reason| CredentialError::Damaged { path: path.to_owned(), reason };
    let Some(bytes) = read_state(path, MAX_FILE_BYTES).map_err(read)? else { return Ok(None) };
    if fs::metadata(path).map_err(read)?.mode() & 0o044 != 0 {
        let reason = io::Error::new(io::ErrorKind::PermissionDenied, "others can read it (chmod 600)");
        return Err(read(reason));
    }
    // The message of the parser could quote a token.
    let login: StoredLogin = serde_json::from_slice(&bytes).map_err(|_| damaged("no valid JSON"))?;
    if login.format != FORMAT {
        return Err(damaged("written by another version"));
    }
    if login.resource != resource {
        return Err(damaged("it belongs to another server"));
    }
    Ok(Some(login))
}

fn open_lock(path: &Path) -> io::Result<fs::File> {
    if let Some(directory) = path.parent() {
        std::os::unix::fs::DirBuilderExt::mode(fs::DirBuilder::new().recursive(true), 0o700)
            .create(directory)?;
    }
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SERVER: &str = "https://mcp.example.com/mcp";
    const LIMIT: Duration = Duration::from_secs(5);

    fn login() -> StoredLogin {
        let token = SecretText::from("token-of-the-test".to_owned());
        StoredLogin {
            issuer: Some("https://login.example.com".to_owned()),
            refresh_token: Some(token.clone()),
            expires_in: Some(3600),
            ..StoredLogin::new(SERVER, "client".to_owned(), token)
        }
    }

    async fn saved(home: &Path) -> (LoginStore, PathBuf) {
        let store = LoginStore::new(home);
        let lock = store.lock(SERVER, LIMIT).await.unwrap();
        store.save(&lock, login()).await.unwrap();
        let path = store.path(SERVER, "json").unwrap();
        (store, path)
    }

    #[tokio::test]
    async fn a_login_survives_in_a_private_file() {
        let home = tempfile::tempdir().unwrap();
        let (store, path) = saved(home.path()).await;
        assert_eq!(store.load(SERVER).await.unwrap(), Some(login()));
        assert_eq!(store.load("https://mcp.example.com/other").await.unwrap(), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let lock = store.lock(SERVER, LIMIT).await.unwrap();
        store.delete(&lock, SERVER).await.unwrap();
        store.delete(&lock, SERVER).await.unwrap();
        assert_eq!(store.load(SERVER).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_damaged_file_is_an_error_that_quotes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (store, path) = saved(home.path()).await;
        let whole = fs::read_to_string(&path).unwrap();
        let other = whole.replace("mcp.example.com/mcp", "mcp.example.com/abc");
        let newer = whole.replace("\"format\": 1", "\"format\": 2");
        let wrong = whole.replace("3600", "\"token-of-the-test\"");
        for content in ["", &whole[..whole.len() / 2], &other, &newer, &wrong] {
            fs::write(&path, content).unwrap();
            let error = store.load(SERVER).await.unwrap_err();
            assert!(matches!(error, CredentialError::Damaged { .. }), "{error}");
            assert!(!format!("{error} {error:?}").contains("token-of-the-test"));
            assert_eq!(fs::read_to_string(&path).unwrap(), content, "the file is unchanged");
        }
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let (store, path) = saved(home.path()).await;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(store.load(SERVER).await, Err(CredentialError::Read { .. })));
    }

    #[tokio::test]
    async fn a_second_holder_waits_for_the_lock_until_its_limit() {
        let home = tempfile::tempdir().unwrap();
        let store = LoginStore::new(home.path());
        let first = store.lock(SERVER, LIMIT).await.unwrap();
        let second = store.lock(SERVER, Duration::from_millis(30)).await;
        assert!(matches!(second, Err(CredentialError::Locked { .. })));
        drop(first);
        assert!(store.lock(SERVER, LIMIT).await.is_ok());
    }

    #[test]
    fn debug_output_of_a_login_shows_no_secret() {
        assert!(!format!("{:?}", login()).contains("token-of-the-test"));
    }

    #[test]
    fn a_token_is_valid_until_the_margin_before_its_end() {
        let login = StoredLogin { expires_in: Some(50), ..login() };
        assert!(login.is_valid_for(Duration::from_secs(10)));
        assert!(!login.is_valid_for(Duration::from_mins(1)));
        assert!(StoredLogin { expires_in: None, ..login }.is_valid_for(Duration::from_mins(1)));
    }
}
