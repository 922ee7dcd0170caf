//! Pins: the definitions of remote tools that the user has approved.
//!
//! The first listing of a configured server is approved as it is. From then on, a tool that is new,
//! renamed or changed in any way is held back until the user has approved it, and so are all tools
//! of a server whose command line or address changed. If the pins cannot be read or written, all
//! tools of the server are held back.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ring::digest::{SHA256, digest};

pub use self::{
    changes::PinChange,
    comparison::{HeldTool, HoldReason, PinReview},
    pin_file::PinError,
    pin_list::{PinnedServer, PinnedTool},
};
use self::{
    comparison::{MAX_NAME_BYTES, compare, held_tool, offered_tools},
    pin_file::{ServerPins, lock_pins, read_pins, write_pins},
    pin_list::{listed, listed_file},
};

use crate::{catalogue::hex, config::McpServerConfig, listing::ServerListing, untrusted_text::visible_line};

mod changes;
mod comparison;
mod pin_file;
mod pin_list;

/// The approved definitions of all servers. All processes of a user share them.
#[derive(Debug)]
pub struct Pins(PinStore);

#[derive(Debug)]
enum PinStore {
    Directory(PathBuf),
    Memory(Mutex<BTreeMap<String, ServerPins>>),
}

impl Pins {
    /// Opens the pins below a directory. Nothing is created before the first review.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        Self(PinStore::Directory(directory.into().join("pins")))
    }

    /// Creates pins that last as long as the process: they notice changes within it.
    pub fn in_memory() -> Self {
        Self(PinStore::Memory(Mutex::default()))
    }

    /// Compares the tools of a server with its pins. The tools of a server without pins are
    /// approved. Reads, and for a change writes, one file.
    pub fn review(&self, server: &str, config: &McpServerConfig, listing: &ServerListing) -> PinReview {
        let compared = |pins: Option<ServerPins>| compare(server, config, listing, pins);
        let reviewed = self.read(server).and_then(|pins| {
            let known = pins.clone();
            let (new, review) = compared(pins);
            if known.as_ref() == Some(&new) {
                return Ok(review);
            }
            self.change(server, |pins| {
                let (new, review) = compared(pins);
                Ok((Some(new), review))
            })
        });
        reviewed.unwrap_or_else(|error| {
            tracing::warn!(server, %error, "all tools of the server are held back");
            let reason = HoldReason::PinsUnusable { problem: with_remedy(server, &error) };
            let held =
                offered_tools(config, listing).map(|tool| held_tool(&tool.name, reason.clone(), Vec::new()));
            PinReview { offered: Vec::new(), held: held.collect() }
        })
    }

    /// Approves what waits for approval: all of a server, or one tool. Returns the names of the
    /// tools.
    pub fn approve(&self, server: &str, tool: Option<&str>) -> Result<Vec<String>, PinError> {
        self.change(server, |pins| {
            let nothing = || PinError::NothingHeld { server: server.to_owned() };
            let mut pins = pins.ok_or_else(nothing)?;
            let approved = match tool {
                None => {
                    if pins.held.is_empty() && pins.held_origin.is_none() {
                        return Err(nothing());
                    }
                    if let Some((hash, shown)) = pins.held_origin.take() {
                        (pins.origin, pins.shown_origin) = (hash, shown);
                    }
                    std::mem::take(&mut pins.held)
                }
                // One tool of a server that is another program now cannot be approved alone.
                Some(_) if pins.held_origin.is_some() => {
                    return Err(PinError::ServerChanged { server: server.to_owned() });
                }
                Some(tool) => pins.held.remove_entry(tool).into_iter().collect(),
            };
            if tool.is_some() && approved.is_empty() {
                return Err(nothing());
            }
            let names = approved.keys().cloned().collect();
            pins.approved.extend(approved);
            Ok((Some(pins), names))
        })
    }

    /// Removes the pins of a server, damaged ones too. Its next listing is approved as it is.
    /// Returns false if it had none.
    pub fn forget(&self, server: &str) -> Result<bool, PinError> {
        match &self.0 {
            PinStore::Memory(pins) => {
                Ok(pins.lock().unwrap_or_else(PoisonError::into_inner).remove(server).is_some())
            }
            PinStore::Directory(directory) => {
                let path = pin_path(directory, server);
                match fs::remove_file(&path) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                    Err(source) => Err(PinError::Write { path, source }),
                }
            }
        }
    }

    /// Lists the pins of all servers, sorted by name.
    pub fn list(&self) -> Result<Vec<PinnedServer>, PinError> {
        let mut servers: Vec<_> = match &self.0 {
            PinStore::Memory(pins) => {
                pins.lock().unwrap_or_else(PoisonError::into_inner).values().map(listed).collect()
            }
            PinStore::Directory(directory) => {
                pin_paths(directory)?.iter().map(|path| listed_file(directory, path)).collect()
            }
        };
        servers.sort_by(|a, b| a.server.cmp(&b.server));
        Ok(servers)
    }

    fn read(&self, server: &str) -> Result<Option<ServerPins>, PinError> {
        match &self.0 {
            PinStore::Memory(pins) => {
                Ok(pins.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned())
            }
            PinStore::Directory(directory) => read_own(&pin_path(directory, server), server),
        }
    }

    /// Changes the pins of a server under the lock.
    fn change<T>(
        &self,
        server: &str,
        change: impl FnOnce(Option<ServerPins>) -> Result<(Option<ServerPins>, T), PinError>,
    ) -> Result<T, PinError> {
        match &self.0 {
            PinStore::Memory(pins) => {
                let mut pins = pins.lock().unwrap_or_else(PoisonError::into_inner);
                let (new, result) = change(pins.get(server).cloned())?;
                pins.extend(new.map(|new| (server.to_owned(), new)));
                Ok(result)
            }
            PinStore::Directory(directory) => {
                let path = pin_path(directory, server);
                let _lock = lock_pins(directory)?;
                let (new, result) = change(read_own(&path, server)?)?;
                if let Some(new) = new {
                    write_pins(&path, &new)?;
                }
                Ok(result)
            }
        }
    }
}

fn read_own(path: &Path, server: &str) -> Result<Option<ServerPins>, PinError> {
    match read_pins(path)? {
        Some(pins) if pins.server != server => Err(foreign(path, &pins)),
        pins => Ok(pins),
    }
}

fn foreign(path: &Path, pins: &ServerPins) -> PinError {
    let problem = format!("they are of server `{}`", visible_line(&pins.server, MAX_NAME_BYTES));
    PinError::Damaged { path: path.to_owned(), problem }
}

fn pin_path(directory: &Path, server: &str) -> PathBuf {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = server.chars().filter(is_plain).take(80).collect();
    let hash = hex(digest(&SHA256, server.as_bytes()).as_ref());
    directory.join(format!("{name}-{}.json", &hash[..16]))
}

fn pin_paths(directory: &Path) -> Result<Vec<PathBuf>, PinError> {
    let failed = |source| PinError::Read { path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns an error with its cause and the remedy.
fn with_remedy(server: &str, error: &PinError) -> String {
    let remedy = match error {
        PinError::Locked { .. } => "try again when the other process has ended".to_owned(),
        PinError::Write { .. } => "make the directory writable".to_owned(),
        _ => format!(
            "restore the file, or run `windlass mcp pins forget {server}` to approve the tools as they are now"
        ),
    };
    format!("{}; {remedy}", in_words(error))
}

fn in_words(error: &PinError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    visible_line(&format!("{error}{}", cause.unwrap_or_default()), 600)
}

#[cfg(test)]
mod tests;
