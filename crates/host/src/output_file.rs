//! A file written on request of the user, in a directory that commands may have changed.
//!
//! Below a writable root, the directory is opened once, without following links that a command
//! could have made, and a new file is renamed into it. A file that a command left at the name is
//! neither followed nor waited for. Elsewhere the path is the user's own and is opened as it is; it
//! may be a device, a descriptor or a FIFO.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use windlass_files::{DirHandle, EntryKind};
use windlass_sandbox::links;

/// Suffix of a file that a command put in the place of the output.
const ASIDE: &str = "windlass-refused";

/// A file to be written once, at the end.
#[derive(Debug)]
pub struct OutputFile(OutputDestination);

#[derive(Debug)]
enum OutputDestination {
    /// A file in a directory that commands may write.
    Entry {
        directory: DirHandle,
        name: OsString,
        exists: bool,
    },
    Path(PathBuf),
    Opened(File),
}

impl OutputFile {
    /// Resolves the path. `writable` lists directories that commands may have written.
    pub fn new(path: &Path, writable: &[PathBuf]) -> io::Result<Self> {
        let absolute = std::path::absolute(path)?;
        // Descriptors of this process, and devices.
        if absolute.starts_with("/dev") || absolute.starts_with("/proc") {
            return Ok(Self(OutputDestination::Path(absolute)));
        }
        let way = links::follow(&absolute).ok_or_else(|| invalid("links in a circle"))?;
        let real = |root: &PathBuf| links::follow(root).map(|way| way.end);
        let roots: Vec<_> = writable.iter().cloned().chain(writable.iter().filter_map(real)).collect();
        let is_below = |path: &Path| roots.iter().any(|root| path != root && path.starts_with(root));
        if let Some((link, _)) = way.links.iter().find(|(link, _)| is_below(link)) {
            let reason = format!("`{}` is a symbolic link where commands may write", link.display());
            return Err(invalid(&reason));
        }
        if !is_below(&way.end) {
            return Ok(Self(OutputDestination::Path(absolute)));
        }
        let (above, name) = way.end.parent().zip(way.end.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let directory = DirHandle::open(above)?;
        let exists = match directory.stat_entry(name) {
            Ok(found) if found.kind == EntryKind::File => true,
            Ok(_) => return Err(invalid("it is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        rustix::fs::accessat(
            &directory,
            ".",
            rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
            rustix::fs::AtFlags::EACCESS,
        )?;
        Ok(Self(OutputDestination::Entry { directory, name: name.to_owned(), exists }))
    }

    /// Opens the file now if the path is the user's own, to find out early if it can be written.
    pub fn opened(self) -> io::Result<Self> {
        let OutputDestination::Path(path) = &self.0 else { return Ok(self) };
        let mut file = File::options().write(true).create(true).truncate(false).open(path)?;
        // An empty write reports errors without writing anything.
        let _nothing = file.write(&[])?;
        Ok(Self(OutputDestination::Opened(file)))
    }

    /// Returns true if the file does not exist yet.
    #[expect(clippy::disallowed_methods, reason = "a path of the user's own, where no command writes")]
    pub fn is_new(&self) -> bool {
        match &self.0 {
            OutputDestination::Entry { exists, .. } => !exists,
            OutputDestination::Path(path) => path.symlink_metadata().is_err(),
            OutputDestination::Opened(_) => false,
        }
    }

    /// Writes the file and replaces its previous content.
    pub fn write(self, bytes: &[u8], permissions: u16) -> io::Result<()> {
        match self.opened()?.0 {
            OutputDestination::Entry { directory, name, .. } => {
                let found = match directory.stat_entry(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    found => Some(found?),
                };
                if let Some(other) = found.filter(|found| found.kind != EntryKind::File) {
                    directory.move_aside(&name, &other, ASIDE)?;
                }
                let kept = found.filter(|found| found.kind == EntryKind::File);
                directory.replace_file(&name, bytes, kept.map_or(permissions, |found| found.permissions))
            }
            OutputDestination::Opened(mut file) => {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                file.write_all(bytes)
            }
            OutputDestination::Path(path) => Err(invalid(&path.display().to_string())),
        }
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    struct TestWorkspace {
        _holder: tempfile::TempDir,
        root: PathBuf,
        victim: PathBuf,
    }

    fn place() -> TestWorkspace {
        let holder = tempfile::tempdir().unwrap();
        let top = holder.path().canonicalize().unwrap();
        for directory in ["ws", "victim"] {
            fs::create_dir(top.join(directory)).unwrap();
        }
        fs::write(top.join("victim/file"), "mine").unwrap();
        TestWorkspace { _holder: holder, root: top.join("ws"), victim: top.join("victim") }
    }

    fn write(place: &TestWorkspace, name: &str) -> io::Result<()> {
        OutputFile::new(&place.root.join(name), std::slice::from_ref(&place.root))?
            .opened()?
            .write(b"new", 0o644)
    }

    fn fifo(path: &Path) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    #[test]
    fn neither_a_link_nor_a_fifo_that_a_command_left_is_opened() {
        let place = place();
        symlink(place.victim.join("file"), place.root.join("link")).unwrap();
        symlink(&place.victim, place.root.join("out")).unwrap();
        symlink(place.victim.join("none"), place.root.join("dangling")).unwrap();
        fifo(&place.root.join("fifo"));
        for name in ["link", "out/file", "out/new", "dangling", "fifo"] {
            assert_eq!(write(&place, name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(fs::read(place.victim.join("file")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&place.victim).unwrap().count(), 1);
    }

    #[test]
    fn what_a_command_puts_in_the_place_meanwhile_is_moved_aside() {
        let place = place();
        let path = place.root.join("receipt");
        for make in [|path: &Path, _: &Path| fifo(path), |path: &Path, to: &Path| symlink(to, path).unwrap()]
        {
            let output = OutputFile::new(&path, std::slice::from_ref(&place.root)).unwrap().opened().unwrap();
            make(&path, &place.victim.join("file"));
            output.write(b"new", 0o644).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(fs::read(place.victim.join("file")).unwrap(), b"mine");
    }

    #[test]
    fn a_file_is_replaced_and_a_second_name_of_it_keeps_what_it_was() {
        let place = place();
        fs::hard_link(place.victim.join("file"), place.root.join("receipt")).unwrap();
        write(&place, "receipt").unwrap();
        assert_eq!(fs::read(place.root.join("receipt")).unwrap(), b"new");
        assert_eq!(fs::read(place.victim.join("file")).unwrap(), b"mine");
    }

    #[test]
    fn elsewhere_links_of_the_users_own_are_followed() {
        let place = place();
        symlink("file", place.victim.join("link")).unwrap();
        let output = OutputFile::new(&place.victim.join("link"), std::slice::from_ref(&place.root)).unwrap();
        output.write(b"new", 0o644).unwrap();
        assert_eq!(fs::read(place.victim.join("file")).unwrap(), b"new");
        OutputFile::new(Path::new("/dev/null"), &[]).unwrap().write(b"new", 0o644).unwrap();
    }
}
