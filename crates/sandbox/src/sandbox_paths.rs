//! What every rung needs to know before it puts up walls: where it stands, what may be written, what is hidden.

use std::path::{Path, PathBuf};

use windlass_contract::SandboxRules;

use crate::{directory_names, secrets};

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
pub(crate) struct PlanError(pub(crate) String);

/// What a machine knows when it draws walls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxPaths<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: &'a Path,
    pub(crate) temporary: Option<&'a Path>,
    pub(crate) sockets: Option<&'a Path>,
    /// Where package managers keep their caches: written, and not looked at for protected names.
    pub(crate) package_cache: Option<&'a Path>,
}

/// What may be read inside something that may not. Found after what is hidden is known.
pub(crate) fn shown(walls: &SandboxRules, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let again = walls.readable_again.iter().filter_map(|path| path.canonicalize().ok());
    again.filter(|path| hidden.iter().any(|above| path.starts_with(above) && path != above)).collect()
}

/// Returns what may not be read and exists, without what lies inside something else that may not. Secrets are found by
/// their names, by links inside them and at every mount point; says what was not looked at.
pub(crate) fn hidden(
    walls: &SandboxRules,
    paths: SandboxPaths<'_>,
    roots: &[PathBuf],
    not_covered: &mut Vec<String>,
) -> Vec<PathBuf> {
    let again: Vec<_> = walls.readable_again.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_kept =
        |path: &Path| !again.iter().any(|again| path == again) && !secrets::is_no_secret(path, paths.home);
    let daemons = directory_names::there(Path::new("/run"), DAEMONS.iter().copied())
        .chain(paths.sockets.map(Path::to_owned));
    let default = secrets::find(paths.home).into_iter().chain(daemons);
    let default = default.filter_map(|path| path.canonicalize().ok()).filter(|path| is_kept(path));
    let asked = walls.unreadable.iter().filter_map(|path| path.canonicalize().ok());
    let mut all: Vec<_> = default.chain(asked).collect();
    secrets::linked::follow(&mut all, is_kept, not_covered);
    #[cfg(target_os = "linux")]
    all.extend(secrets::mounts::other_paths(&all).into_iter().filter(|path| is_kept(path)));
    let works_inside =
        |path: &PathBuf| roots.iter().any(|root| root.starts_with(path)) || paths.cwd.starts_with(path);
    let (open, kept): (Vec<_>, _) = all.into_iter().partition(works_inside);
    not_covered.extend(
        outermost(open)
            .iter()
            .map(|path| format!("reading `{}`: the command works inside it", path.display())),
    );
    outermost(kept)
}

/// Sorts paths and leaves out those that lie inside another one.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        // What lies inside another path is sorted directly behind it, or behind others that do.
        if !kept.last().is_some_and(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}
