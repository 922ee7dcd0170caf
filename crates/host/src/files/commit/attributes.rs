//! Extended attributes, access lists among them, which go on to a file's new content.

use std::{ffi::CString, fs::File, io};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, flistxattr_query, fsetxattr},
    io::Errno,
};

/// The most the kernel gives for the list, or for a value.
const LIMIT_BYTES: usize = 64 * 1024;

/// Who else may use the file.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

/// Powers that come with a program: whoever changes what it does must not pass them on.
const CAPABILITY: &[u8] = b"security.capability";

/// The attributes of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes(Vec<(CString, Vec<u8>)>);

impl Attributes {
    /// Reads them all. A file system without any has none.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        // Asked for the size alone first: nearly always that is the end of it.
        match flistxattr_query(file) {
            Ok(0) | Err(Errno::NOTSUP) => return Ok(Self::default()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut list = vec![0; LIMIT_BYTES];
        let length = flistxattr(file, &mut list[..])?;
        let mut value = vec![0; LIMIT_BYTES];
        let mut attributes = Vec::new();
        for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = CString::new(name)?;
            match fgetxattr(file, &*name, &mut value[..]) {
                Ok(length) => attributes.push((name, value[..length].to_vec())),
                // Gone meanwhile, or not for us to see.
                Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self(attributes))
    }

    /// Gives them to another file, as far as this user may.
    pub(super) fn give(&self, file: &File) -> io::Result<()> {
        for (name, value) in &self.0 {
            let name_bytes = name.as_bytes();
            if name_bytes == CAPABILITY {
                continue;
            }
            match fsetxattr(file, &**name, value, XattrFlags::empty()) {
                // Without its list, the bits of the mode would give the group what was meant for those on it.
                Err(error) if name_bytes == ACCESS_LIST => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}
