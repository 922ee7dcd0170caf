//! Memory that this process and a zygote map at the same addresses: an order is written here and
//! carried out there.

use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_void},
    io, mem, ptr,
};

use super::child::{ExecAttempt, ExecProgram};
use crate::program::Program;

/// More than the kernel takes of arguments and variables together, which is 6 MiB. Only pages that
/// are written to take memory.
const SIZE_BYTES: usize = 16 * 1024 * 1024;

/// The memory that is kept from order to order; that of a longer order is given back.
const KEPT_BYTES: usize = 256 * 1024;

/// The stack of a child that shares its parent's memory. It uses a few kilobytes, and no signal
/// handler runs on it.
const STACK_BYTES: usize = 64 * 1024;

/// A bump allocator in shared memory, cleared as a whole.
#[derive(Debug)]
pub(super) struct SharedArena {
    bottom: *mut u8,
    used: Cell<usize>,
}

// SAFETY: the memory is this value's alone, and a `Cell` may go from thread to thread.
unsafe impl Send for SharedArena {}

impl SharedArena {
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory, wherever there is room; what the call gives is checked.
        let bottom = unsafe {
            libc::mmap(ptr::null_mut(), SIZE_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if bottom == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { bottom: bottom.cast(), used: Cell::new(0) })
    }

    /// Frees everything.
    pub(super) fn clear(&mut self) {
        if self.used.replace(0) > KEPT_BYTES {
            // SAFETY: the range is our mapping's, and nothing in it is borrowed: that would have
            // borrowed `self`.
            unsafe {
                libc::madvise(self.bottom.add(KEPT_BYTES).cast(), SIZE_BYTES - KEPT_BYTES, libc::MADV_REMOVE)
            };
        }
    }

    /// Stores a value.
    pub(super) fn put<T: Copy>(&self, value: T) -> io::Result<&T> {
        self.list([value].into_iter()).map(|list| &list[0])
    }

    /// Stores values as a slice.
    pub(super) fn list<T: Copy>(&self, values: impl ExactSizeIterator<Item = T>) -> io::Result<&[T]> {
        let room = values.len();
        let place = self.room(mem::size_of::<T>().saturating_mul(room), mem::align_of::<T>())?.cast::<T>();
        let mut written = 0;
        for value in values.take(room) {
            // SAFETY: there is room for that many, aligned for the type, and no other value has it.
            unsafe { place.add(written).write(value) };
            written += 1;
        }
        // SAFETY: so many were just written, and stay until `clear`, which cannot be called while
        // they are borrowed.
        Ok(unsafe { std::slice::from_raw_parts(place, written) })
    }

    /// Stores values that may be errors.
    pub(super) fn try_list<T: Copy>(
        &self,
        values: impl ExactSizeIterator<Item = io::Result<T>>,
    ) -> io::Result<&[T]> {
        let values = values.collect::<io::Result<Vec<_>>>()?;
        self.list(values.into_iter())
    }

    /// Stores a C string.
    pub(super) fn text(&self, text: &CStr) -> io::Result<&CStr> {
        let bytes = self.list(text.to_bytes_with_nul().iter().copied())?;
        CStr::from_bytes_with_nul(bytes).map_err(io::Error::other)
    }

    /// Stores a program in the form that `execve` takes.
    pub(super) fn exec_program(&self, program: &Program) -> io::Result<ExecProgram> {
        let attempt = |candidates: &[CString], argv: &[CString]| {
            Ok::<_, io::Error>(ExecAttempt {
                candidates: self.pointers(candidates)?,
                argv: self.pointers(argv)?,
            })
        };
        let bypass = program.bypass.as_ref();
        let bypass =
            bypass.map_or_else(|| attempt(&[], &[]), |bypass| attempt(&bypass.candidates, &bypass.argv))?;
        Ok(ExecProgram {
            attempts: [bypass, attempt(&program.candidates, &program.argv)?],
            env: self.pointers(&program.env)?,
            cwd: self.text(&program.cwd)?.as_ptr(),
        })
    }

    /// Stores C strings and an array of pointers to them that ends in a null pointer.
    fn pointers(&self, texts: &[CString]) -> io::Result<*const *const c_char> {
        let texts = texts.iter().map(|text| self.text(text).map(CStr::as_ptr));
        let texts = texts.collect::<io::Result<Vec<_>>>()?;
        let ended: Vec<_> = texts.into_iter().chain([ptr::null()]).collect();
        self.list(ended.into_iter()).map(<[_]>::as_ptr)
    }

    /// Reserves a stack. Returns its top: stacks grow down.
    pub(super) fn stack(&self) -> io::Result<*mut c_void> {
        let bottom = self.room(STACK_BYTES, mem::align_of::<u128>())?;
        // SAFETY: one past the end of that much room.
        Ok(unsafe { bottom.add(STACK_BYTES) }.cast())
    }

    fn room(&self, size: usize, align: usize) -> io::Result<*mut u8> {
        let begin = self.used.get().next_multiple_of(align);
        let end = begin.checked_add(size).filter(|end| *end <= SIZE_BYTES);
        // More than this is too much for `execve` as well.
        self.used.set(end.ok_or_else(|| io::Error::from_raw_os_error(libc::E2BIG))?);
        // SAFETY: `begin` is inside the mapping, or one past its end for nothing at all.
        Ok(unsafe { self.bottom.add(begin) })
    }
}

impl Drop for SharedArena {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that size, and nothing in it is borrowed any more.
        unsafe { libc::munmap(self.bottom.cast(), SIZE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned_and_stay_until_the_arena_is_cleared() {
        let mut arena = SharedArena::new().unwrap();
        let text = arena.text(c"a").unwrap();
        let number = arena.put(7_u64).unwrap();
        let list = arena.list([1_u32, 2, 3].into_iter()).unwrap();
        assert!(ptr::from_ref(number).is_aligned() && arena.stack().unwrap().cast::<u128>().is_aligned());
        assert_eq!((text, *number, list), (c"a", 7, &[1, 2, 3][..]));
        arena.clear();
        assert_eq!(arena.used.get(), 0);
    }

    #[test]
    fn more_than_the_kernel_would_take_is_refused() {
        let mut arena = SharedArena::new().unwrap();
        let half = CString::new(vec![b'a'; SIZE_BYTES / 2]).unwrap();
        assert!(arena.text(&half).is_ok());
        assert_eq!(arena.text(&half).unwrap_err().raw_os_error(), Some(libc::E2BIG));
        arena.clear();
        assert!(arena.text(&half).is_ok());
    }
}
