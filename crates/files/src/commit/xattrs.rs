//! Extended attributes, access control lists among them, which are copied to the new content of a
//! file.

use std::{fs::File, io};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fsetxattr},
    io::Errno,
};
use windlass_contract::edit::Attributes;

/// Maximum size of the list, and of one value, in the kernel (`XATTR_SIZE_MAX`).
const MAX_BYTES: usize = 64 * 1024;

/// The access control list of the file.
const POSIX_ACL_ACCESS: &str = "system.posix_acl_access";

/// Capabilities of a program file: they must not be given to changed content.
const CAPABILITY: &str = "security.capability";

/// Reads the attributes of a file; none on a file system that does not support them.
pub(crate) fn read(file: &File) -> io::Result<Attributes> {
    // Ask for the size first: it is nearly always 0.
    match flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Attributes::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut list = vec![0; MAX_BYTES];
    let length = flistxattr(file, &mut list[..])?;
    let mut value = vec![0; MAX_BYTES];
    let mut attributes = Attributes::new();
    // The kernel takes any bytes as a name; one that is not UTF-8 is skipped.
    let names = list[..length].split(|byte| *byte == 0).filter_map(|name| str::from_utf8(name).ok());
    for name in names.filter(|name| !name.is_empty()) {
        match fgetxattr(file, name, &mut value[..]) {
            Ok(length) => drop(attributes.insert(name.to_owned(), value[..length].to_vec())),
            // Removed by now, or not readable by this user.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(attributes)
}

/// Sets attributes on a file, as far as this user may.
pub(crate) fn write(attributes: &Attributes, file: &File) -> io::Result<()> {
    for (name, value) in attributes.iter().filter(|(name, _)| *name != CAPABILITY) {
        match fsetxattr(file, &**name, value, XattrFlags::empty()) {
            // Without its list, the group bits of the mode would grant the group what was meant for
            // the users on the list.
            Err(error) if name == POSIX_ACL_ACCESS => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
