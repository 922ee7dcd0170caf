//! Renames that never lose the work of someone else, used by commits, layers and undo to replace
//! one entry by another.
//!
//! Checking an entry and then renaming another over it loses a save in between. So two names are
//! exchanged atomically, and the entry that came out is checked. If it is not the expected one, it
//! is put back.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::AsFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
};

use rustix::{
    fs::{AtFlags, RenameFlags, linkat, renameat_with, unlinkat},
    io::Errno,
};

/// Suffix of the name under which another content of a file is saved for the user.
const BEFORE_SUFFIX: &str = ".windlass-before";

/// Maximum number of names tried for a saved content.
const MAX_NAMES: usize = 1000;

/// Maximum length of a name (`NAME_MAX`), less the suffix and a number.
const MAX_NAME_BYTES: usize = 255 - BEFORE_SUFFIX.len() - 5;

/// Maximum number of attempts to put back an entry that someone else keeps replacing.
const MAX_EXCHANGES: usize = 1000;

/// An entry, as its directory and its name.
pub(crate) type EntryPlace<'a, D> = (&'a D, &'a OsStr);

/// Exchanges an entry of ours with another one, and checks the entry that came out.
pub(crate) struct CheckedExchange<'a, S> {
    /// Exchanges the two.
    pub(crate) exchange: &'a dyn Fn() -> io::Result<()>,
    /// Renames the entry at our name to the other name, if that is free.
    pub(crate) put_back: &'a dyn Fn() -> io::Result<()>,
    /// Reads the entry at our name.
    pub(crate) look: &'a dyn Fn() -> io::Result<Option<S>>,
    /// Returns true if both are the same file, whatever was written to it.
    pub(crate) is_same_file: fn(&S, &S) -> bool,
}

impl<S> CheckedExchange<'_, S> {
    /// Exchanges the two, if the other is the expected one. If not, puts both back and returns
    /// false.
    pub(crate) fn run(&self, is_expected: impl FnOnce(&S) -> bool) -> io::Result<bool> {
        let mut put_in = (self.look)()?.ok_or(io::ErrorKind::NotFound)?;
        (self.exchange)()?;
        let mut came_out = (self.look)()?.ok_or(io::ErrorKind::NotFound)?;
        if is_expected(&came_out) {
            return Ok(true);
        }
        for _ in 0..MAX_EXCHANGES {
            match (self.exchange)() {
                Ok(()) => {}
                // Removed by someone in between. A file too many is better than one that is lost.
                Err(error) if error.kind() == io::ErrorKind::NotFound => match (self.put_back)() {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    back => return back.map(|()| false),
                },
                Err(error) => return Err(error),
            }
            let now = (self.look)()?.ok_or(io::ErrorKind::NotFound)?;
            if (self.is_same_file)(&now, &put_in) {
                return Ok(false);
            }
            // Saved once more in between: the entry that came out now is newer, and belongs there.
            (put_in, came_out) = (came_out, now);
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

/// Renames an entry to a free name, if it is the one expected. If not, puts it back and returns
/// false.
pub(crate) fn take_away<D: AsFd>(
    from: EntryPlace<'_, D>,
    aside: EntryPlace<'_, D>,
    rename: impl Fn(EntryPlace<'_, D>, EntryPlace<'_, D>) -> io::Result<()>,
    is_expected: impl FnOnce() -> bool,
) -> io::Result<bool> {
    rename(from, aside)?;
    if is_expected() {
        return Ok(true);
    }
    match rename(aside, from) {
        // Saved once more in between.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            save_beside(aside, from, rename).map(|_| false)
        }
        back => back.map(|()| false),
    }
}

/// Renames another content of a file to a free name beside it, for the user to find.
pub(crate) fn save_beside<D: AsFd>(
    from: EntryPlace<'_, D>,
    beside: EntryPlace<'_, D>,
    rename: impl Fn(EntryPlace<'_, D>, EntryPlace<'_, D>) -> io::Result<()>,
) -> io::Result<OsString> {
    let name = beside.1.as_bytes();
    let name = &name[..name.len().min(MAX_NAME_BYTES)];
    for at in 1..=MAX_NAMES {
        let number = if at == 1 { String::new() } else { format!("-{at}") };
        let free = OsString::from_vec([name, BEFORE_SUFFIX.as_bytes(), number.as_bytes()].concat());
        match rename(from, (beside.0, &free)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => return renamed.map(|()| free),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Renames an entry to a name that is free; fails if it is taken.
pub(crate) fn rename_to_free<D: AsFd>(from: EntryPlace<'_, D>, to: EntryPlace<'_, D>) -> io::Result<()> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            Ok(unlinkat(from.0, from.1, AtFlags::empty())?)
        }
        renamed => Ok(renamed?),
    }
}

/// Exchanges two names. The error is `Unsupported` if the file system cannot.
pub(crate) fn exchange<D: AsFd>(one: EntryPlace<'_, D>, other: EntryPlace<'_, D>) -> io::Result<()> {
    match renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::Unsupported.into()),
        exchanged => Ok(exchanged?),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove_file(directory: impl AsFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "tests do what people do")]
mod tests {
    use std::{cell::Cell, fs, path::Path};

    use super::*;
    use crate::{DirHandle, EntryStat};

    /// Exchanges `ours` and `file`, which holds `old`; a person acts before each exchange. Returns
    /// the result and both contents.
    fn exchanged_while(person: impl Fn(&Path, usize)) -> (bool, Option<String>, Option<String>) {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        fs::write(top.join("file"), "old").unwrap();
        fs::write(top.join("ours"), "new").unwrap();
        let handle = DirHandle::open(&top).unwrap();
        let expected = handle.stat_entry(OsStr::new("file")).unwrap();
        let (ours, file, times) =
            ((&handle, OsStr::new("ours")), (&handle, OsStr::new("file")), Cell::new(0));
        let exchanging = CheckedExchange {
            exchange: &|| {
                person(&top, times.get());
                times.set(times.get() + 1);
                exchange(ours, file)
            },
            put_back: &|| rename_to_free(ours, file),
            look: &|| handle.stat_entry(OsStr::new("ours")).map(Some),
            is_same_file: EntryStat::is_same_file,
        };
        let done = exchanging.run(|found| found.is_same_file(&expected)).unwrap();
        let held = |name: &str| fs::read_to_string(top.join(name)).ok();
        (done, held("file"), held("ours"))
    }

    /// Saves as editors do.
    fn save(top: &Path, text: &str) {
        fs::write(top.join("draft"), text).unwrap();
        fs::rename(top.join("draft"), top.join("file")).unwrap();
    }

    #[test]
    fn what_a_person_saves_meanwhile_ends_in_its_place() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(exchanged_while(|_, _| ()), (true, some("new"), some("old")));
        let once = exchanged_while(|top, at| {
            if at == 0 {
                save(top, "mine")
            }
        });
        assert_eq!(once, (false, some("mine"), some("new")));
        for saves in 2..6 {
            let (done, file, _) = exchanged_while(|top, at| {
                if at < saves {
                    save(top, &format!("mine {at}"))
                }
            });
            assert_eq!((done, file), (false, Some(format!("mine {}", saves - 1))));
        }
    }

    #[test]
    fn what_a_person_saves_and_removes_is_not_lost() {
        let removed = exchanged_while(|top, at| match at {
            0 => save(top, "mine"),
            _ => fs::remove_file(top.join("file")).unwrap(),
        });
        assert_eq!(removed, (false, Some("mine".to_owned()), None));
    }
}
