//! Works out the steps to the view of the files that a command has.

use std::{
    ffi::CString,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use super::{
    mount_step::{HIDDEN_DIRECTORY, HIDDEN_FILE, MAX_HELD_TREES, MountStep, STAND_INS, c},
    private_directories::{
        DEVICES, PRIVATE, TmpfsOptions, VAR_TMP, has_var_tmp, kept_in_private, private_top,
    },
};
use crate::{
    ProtectedPaths, private_tmp,
    sandbox_paths::{PlanError, SandboxPaths},
    secrets::{StandIn, mounts},
    writable_plan::{LayerMount, PrivateFile, UPPER_NAME, WORK_NAME, WritablePlan, WritableRoot},
};

/// Visible paths inside hidden ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownPaths<'a> {
    pub(super) all: &'a [PathBuf],
    /// The one of them that may be written.
    pub(super) writable: Option<&'a Path>,
}

/// Collects steps.
#[derive(Debug, Default)]
pub(super) struct MountPlanner {
    pub(super) steps: Vec<MountStep>,
    /// The first slot of what is shown inside something hidden.
    shown_slot: usize,
    /// Writable directories beside the roots.
    pub(super) beside: Vec<PathBuf>,
    /// To be mounted after the directories they are in were pinned.
    file_links: Vec<MountStep>,
}

impl MountPlanner {
    /// The view from afar: what is held, what is new, what is read-only.
    pub(super) fn files(
        &mut self,
        plan: &WritablePlan<'_>,
        shown: &[PathBuf],
        paths: SandboxPaths<'_>,
        tmpfs: &TmpfsOptions,
    ) -> Result<(), PlanError> {
        let mut held: Vec<(PathBuf, PathBuf)> = DEVICES
            .iter()
            .map(|name| Path::new("/dev").join(name))
            .map(|path| (path.clone(), path))
            .collect();
        if let Some(temporary) = paths.temporary.filter(|_| !tmpfs.at_tmp) {
            held.push((temporary.to_owned(), "/tmp".into()));
            let second = has_var_tmp().then(|| private_tmp::make_second(temporary)).flatten();
            held.extend(second.map(|second| (second, VAR_TMP.into())));
        }
        let private = held.len();
        let trees: Vec<_> = plan.roots.iter().map(|root| root.path.to_owned()).collect();
        let kept = kept_in_private(&trees, paths);
        // What lies in the system's own /tmp disappears behind the private one, unless the command
        // works there.
        let works = Some(paths.cwd.to_owned())
            .filter(|cwd| private_top(cwd).is_some() && !trees.iter().any(|tree| cwd.starts_with(tree)));
        held.extend(works.iter().chain(&self.beside).map(|tree| (tree.clone(), tree.clone())));
        let configs = plan.private_files.first().and_then(|file| file.directory.parent());
        held.extend(configs.map(|store| (store.to_owned(), PathBuf::from(PrivateFile::SANDBOX_DIRECTORY))));
        let by_path = held.len();
        held.extend(trees.iter().map(|tree| (tree.clone(), tree.clone())));
        if held.len() + shown.len() + kept.len() > MAX_HELD_TREES {
            return Err(PlanError(format!("more than {MAX_HELD_TREES} directories are to be carried over")));
        }
        let held_paths = held.iter().take(by_path).map(|(path, _)| path);
        self.shown_slot = held.len();
        for (slot, path) in held_paths.enumerate() {
            self.steps.push(MountStep::CloneTree { path: c(path)?, slot });
        }
        for (slot, root) in (by_path..).zip(plan.roots) {
            let directory = root.directory.as_raw_fd();
            self.steps.push(MountStep::CloneRoot { directory, path: c(root.path)?, slot });
        }
        for (slot, path) in (self.shown_slot..).zip(shown) {
            self.steps.push(MountStep::CloneTree { path: c(path)?, slot });
        }
        self.steps.push(MountStep::AllReadOnly);
        // Held read-only, as everything is by now.
        let kept_slot = self.shown_slot + shown.len();
        for (slot, path) in (kept_slot..).zip(&kept) {
            self.steps.push(MountStep::CloneTree { path: c(path)?, slot });
        }
        if tmpfs.at_tmp {
            self.tmpfs("/tmp", &tmpfs.options)?;
            if has_var_tmp() {
                self.tmpfs(VAR_TMP, &tmpfs.options)?;
            }
        }
        self.devices(tmpfs)?;
        if configs.is_some() {
            self.steps.push(MountStep::Directory { path: c(PrivateFile::SANDBOX_DIRECTORY)?, mode: 0o755 });
        }
        self.steps.push(MountStep::Proc { path: c("/proc")? });
        let places = held.iter().map(|(_, path)| path).enumerate();
        let (first, rest) = places.partition::<Vec<_>, _>(|(slot, _)| *slot < private);
        for (slot, path) in first.into_iter().chain((kept_slot..).zip(&kept)).chain(rest) {
            match private_top(path).filter(|top| path != top) {
                Some(_) if path.is_file() => {
                    self.steps.push(MountStep::File { path: c(path)?, mode: 0o644 });
                }
                Some(top) => self.directories(top, path)?,
                None => {}
            }
            match slot.checked_sub(by_path).and_then(|number| plan.roots.get(number)) {
                Some(WritableRoot { path, layer: Some(layer), .. }) => self.overlay(slot, path, *layer)?,
                _ => self.steps.push(MountStep::Attach { slot, path: c(path)? }),
            }
        }
        if works.is_some() {
            self.steps.push(MountStep::SetReadOnly { path: c(paths.cwd)? });
        }
        self.private_files(plan.private_files)
    }

    /// Mounts an overlay on a root. Its layers are named by a path of our own, because a path in
    /// the options would have to be escaped; the overlay keeps them when that path is taken away,
    /// and the command has no other way to them.
    fn overlay(&mut self, slot: usize, root: &Path, layer: LayerMount<'_>) -> Result<(), PlanError> {
        let lower = format!("/dev/.layer-{slot}");
        let name = layer.name;
        let options = format!(
            "lowerdir={lower},upperdir={lower}/{name}/{UPPER_NAME},workdir={lower}/{name}/{WORK_NAME},userxattr,volatile"
        );
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if !name.bytes().all(is_plain) {
            return Err(PlanError(format!("`{name}` cannot be the name of a layer")));
        }
        if let Some(inner) = mounts::mount_points_in(root).first() {
            // The kernel refuses it: mounts of a namespace with more rights must not be taken away
            // from what they cover.
            let (inner, root) = (inner.display(), root.display());
            return Err(PlanError(format!(
                "there is a mount at `{inner}`, and no layer can be on `{root}` around it"
            )));
        }
        self.steps.push(MountStep::Directory { path: c(&lower)?, mode: 0o700 });
        self.steps.push(MountStep::Attach { slot, path: c(&lower)? });
        self.steps.push(MountStep::Overlay { path: c(root)?, options: c(options)? });
        self.steps.push(MountStep::Detach { path: c(&lower)? });
        Ok(())
    }

    /// Has the settings of each repository lead to the command's copy of them. Git follows a link
    /// to write them, but could not rename a file over a mount.
    fn private_files(&mut self, files: &[PrivateFile<'_>]) -> Result<(), PlanError> {
        for (number, file) in files.iter().enumerate() {
            let link = c(format!("/dev/.git-config-{number}"))?;
            let target = c(file.path_in_sandbox())?;
            self.steps.push(MountStep::Link { path: link.clone(), target });
            self.file_links.push(MountStep::MountLink { path: c(file.path)?, link });
        }
        Ok(())
    }

    fn directories(&mut self, top: &Path, path: &Path) -> Result<(), PlanError> {
        for above in directories_between(top, path) {
            self.steps.push(MountStep::Directory { path: c(above)?, mode: 0o755 });
        }
        Ok(())
    }

    pub(super) fn tmpfs(&mut self, path: &str, options: &str) -> Result<(), PlanError> {
        self.steps.push(MountStep::Tmpfs { path: c(path)?, options: c(options)? });
        Ok(())
    }

    /// The view from near: what must not change or be seen inside what may be written.
    pub(super) fn inside(
        &mut self,
        protected: &ProtectedPaths,
        hidden: &[PathBuf],
        ShownPaths { all: shown, writable }: ShownPaths<'_>,
    ) -> Result<(), PlanError> {
        for path in &protected.pinned {
            self.steps.push(MountStep::Pin { path: c(path)? });
        }
        for path in &protected.read_only {
            self.steps.push(MountStep::BindReadOnly { path: c(path)? });
        }
        self.steps.append(&mut self.file_links);
        let visible = |path: &&PathBuf| {
            let in_tmp = private_top(path).is_some();
            let in_tree = self.steps.iter().any(|step| match step {
                MountStep::Attach { path: place, .. } | MountStep::Overlay { path: place, .. } => {
                    let place = as_path(place);
                    !PRIVATE.iter().any(|private| place == Path::new(private)) && path.starts_with(place)
                }
                _ => false,
            });
            !in_tmp || in_tree
        };
        let hidden: Vec<_> = hidden.iter().filter(visible).collect();
        // An empty place that the shown can be put into, where there is something to show.
        let (emptied, covered): (Vec<&PathBuf>, Vec<_>) =
            hidden.into_iter().partition(|path| shown.iter().any(|each| each.starts_with(path)));
        // A bind mount has the flags of its source, so what hides is read-only from here on.
        self.steps.push(MountStep::SetReadOnly { path: c("/dev")? });
        for path in covered {
            let is_directory = path.is_dir();
            let with = if is_directory { HIDDEN_DIRECTORY } else { HIDDEN_FILE };
            self.steps.push(match StandIn::find(path).filter(|_| !is_directory) {
                None => MountStep::Hide { path: c(path)?, with: with.to_owned() },
                Some(stand_in) => {
                    let with = c(Path::new(STAND_INS).join(stand_in.name()))?;
                    MountStep::StandIn { path: c(path)?, with }
                }
            });
        }
        for path in &emptied {
            self.steps.push(MountStep::Tmpfs { path: c(path)?, options: c("mode=755,size=64k")? });
        }
        for (slot, path) in (self.shown_slot..).zip(shown) {
            let emptied = emptied.iter().find(|top| path.starts_with(top)).map(|top| top.as_path());
            let top = emptied.or_else(|| private_top(path)).unwrap_or(Path::new("/tmp"));
            self.directories(top, path)?;
            self.steps.push(MountStep::Attach { slot, path: c(path)? });
            if Some(path.as_path()) != writable {
                self.steps.push(MountStep::SetReadOnly { path: c(path)? });
            }
        }
        for path in emptied {
            self.steps.push(MountStep::SetReadOnly { path: c(path)? });
        }
        Ok(())
    }
}

fn directories_between<'a>(top: &Path, path: &'a Path) -> Vec<&'a Path> {
    let mut between: Vec<_> = path.ancestors().take_while(|above| *above != top).collect();
    between.reverse();
    between
}

fn as_path(string: &CString) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(string.as_bytes()))
}
