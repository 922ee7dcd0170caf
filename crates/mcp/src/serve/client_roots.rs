//! The directories that a client of an older version works in.

use std::{
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rmcp::{RoleServer, service::RequestContext};
use tokio::time::timeout;

use super::handler::asks_by_repetition;

/// Maximum time in which a client names its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of roots of a client.
const MAX_ROOTS: usize = 64;

/// The roots of the client on one connection, once they were asked for.
#[derive(Debug, Default)]
pub(super) struct ClientRoots(Mutex<RootsAnswer>);

#[derive(Debug, Clone, Default)]
enum RootsAnswer {
    #[default]
    NotAsked,
    Unnamed,
    Named(Vec<PathBuf>),
}

impl ClientRoots {
    /// Asks for the roots again before the next call.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = RootsAnswer::NotAsked;
    }

    /// Returns the roots of the client. They are asked for once, of versions that have them.
    #[expect(deprecated, reason = "clients of versions before 2026-07-28 have roots")]
    pub(super) async fn of_client(&self, context: &RequestContext<RoleServer>) -> Option<Vec<PathBuf>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            RootsAnswer::NotAsked => {}
            RootsAnswer::Unnamed => return None,
            RootsAnswer::Named(roots) => return Some(roots),
        }
        let declared = context.client_capabilities().is_some_and(|declared| declared.roots.is_some());
        if !declared || asks_by_repetition(context) {
            return None;
        }
        let roots = match timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await {
            Ok(Ok(listed)) => {
                let addresses = listed.roots.iter().take(MAX_ROOTS);
                Some(addresses.filter_map(|root| local_path(&root.uri)).collect())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a client has not named its roots");
                None
            }
            Err(_elapsed) => {
                tracing::warn!("a client has not named its roots in time");
                None
            }
        };
        let answer = roots.clone().map_or(RootsAnswer::Unnamed, RootsAnswer::Named);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        roots
    }
}

/// Returns the path in a `file:` address on this machine.
fn local_path(address: &str) -> Option<PathBuf> {
    let rest = address.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.split_at_checked(2)).flatten();
        let escaped = escaped.and_then(|(digits, after)| Some((hexadecimal(digits)?, after)));
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_root_is_a_path_on_this_machine() {
        assert_eq!(local_path("file:///home/a%20b").as_deref(), Some(Path::new("/home/a b")));
        assert_eq!(local_path("file://localhost/x").as_deref(), Some(Path::new("/x")));
        assert_eq!(local_path("file:///100%").as_deref(), Some(Path::new("/100%")));
        assert_eq!(local_path("file:///a%+1").as_deref(), Some(Path::new("/a%+1")));
        assert_eq!(
            [local_path("file://other/x"), local_path("https://a/b"), local_path("/x")],
            [None, None, None]
        );
    }
}
