//! What every rung needs to know before it puts up walls: where it stands, what may be written, what is hidden.

use std::path::{Path, PathBuf};

use windlass_contract::Walls;

use crate::{names, secrets};

/// Places in `/run` of daemons that would act for whoever asks them. Hidden even where the network may be used.
#[rustfmt::skip]
const DAEMONS: &[&str] = &[
    "docker.sock",        // starts containers as root
    "containerd",
    "podman",
    "crio",
    "dbus",               // the system's services
    "systemd/private",
    "user",               // the session's services, keyrings and agents
    "libvirt",
    "snapd.socket",
    "lxd.socket",
];

/// Why walls cannot be drawn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Impossible(pub(crate) String);

/// What a machine knows when it draws walls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    pub(crate) temporary: Option<&'a Path>,
    pub(crate) sockets: Option<&'a Path>,
}

/// What may be read inside something that may not. Found after what is hidden is known.
pub(crate) fn shown(walls: &Walls, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let again = walls.readable_again.iter().filter_map(|path| path.canonicalize().ok());
    again.filter(|path| hidden.iter().any(|above| path.starts_with(above) && path != above)).collect()
}

/// What may not be read and exists, without what lies inside something else that may not.
pub(crate) fn hidden(
    walls: &Walls,
    ground: Ground<'_>,
    roots: &[PathBuf],
    not_covered: &mut Vec<String>,
) -> Vec<PathBuf> {
    let again: Vec<_> = walls.readable_again.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let by_default = ground.home.into_iter().flat_map(secrets::below);
    let daemons =
        names::there(Path::new("/run"), DAEMONS.iter().copied()).chain(ground.sockets.map(Path::to_owned));
    let default: Vec<_> = by_default
        .chain(daemons)
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| !again.contains(path))
        .collect();
    let asked = walls.unreadable.iter().filter_map(|path| path.canonicalize().ok());
    let mut all: Vec<_> = default.into_iter().chain(asked).collect();
    all.sort();
    all.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in all {
        if roots.iter().any(|root| root.starts_with(&path)) || ground.cwd.starts_with(&path) {
            not_covered.push(format!("reading `{}`: the command works inside it", path.display()));
        } else if !kept.iter().any(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}
