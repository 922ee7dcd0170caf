//! Extended attributes, access lists among them, which go on to a file's new content.

use std::{fs::File, io};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fsetxattr},
    io::Errno,
};
use windlass_contract::edit::Attributes;

/// The most the kernel gives for the list, or for a value.
const LIMIT_BYTES: usize = 64 * 1024;

/// Who else may use the file.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Powers that come with a program: whoever changes what it does must not pass them on.
const CAPABILITY: &str = "security.capability";

/// The attributes of a file. A file system without any has none.
pub(crate) fn of(file: &File) -> io::Result<Attributes> {
    // Asked for the size alone first: nearly always that is the end of it.
    match flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Attributes::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut list = vec![0; LIMIT_BYTES];
    let length = flistxattr(file, &mut list[..])?;
    let mut value = vec![0; LIMIT_BYTES];
    let mut attributes = Attributes::new();
    // The kernel takes any bytes for a name, but nobody gives one that is no text.
    let names = list[..length].split(|byte| *byte == 0).filter_map(|name| str::from_utf8(name).ok());
    for name in names.filter(|name| !name.is_empty()) {
        match fgetxattr(file, name, &mut value[..]) {
            Ok(length) => drop(attributes.insert(name.to_owned(), value[..length].to_vec())),
            // Gone meanwhile, or not for us to see.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(attributes)
}

/// Gives attributes to a file, as far as this user may.
pub(crate) fn give(attributes: &Attributes, file: &File) -> io::Result<()> {
    for (name, value) in attributes.iter().filter(|(name, _)| *name != CAPABILITY) {
        match fsetxattr(file, &**name, value, XattrFlags::empty()) {
            // Without its list, the bits of the mode would give the group what was meant for those on it.
            Err(error) if name == ACCESS_LIST => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
