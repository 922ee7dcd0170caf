//! Memory that this process and its starters see at the same addresses: an order is written here, and followed there.

use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_void},
    io, mem, ptr,
};

use super::child::{Call, Words};
use crate::program::Program;

/// More than the kernel takes of arguments and variables together, which is 6 MiB, and all else. Only what is written to
/// takes memory.
const SIZE: usize = 16 * 1024 * 1024;

/// What is kept from order to order; a longer one gives its memory back.
const KEPT: usize = 256 * 1024;

/// A stack for a child that borrows its parent's memory. The deepest frame of one is a few hundred bytes, and no handler
/// can run on top of it.
const STACK_SIZE: usize = 64 * 1024;

/// Filled from the bottom, and cleared as a whole.
#[derive(Debug)]
pub(super) struct Arena {
    bottom: *mut u8,
    used: Cell<usize>,
}

// SAFETY: the memory is this value's alone, and a `Cell` may go from thread to thread.
unsafe impl Send for Arena {}

impl Arena {
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory, wherever there is room; what the call gives is checked.
        let bottom =
            unsafe { libc::mmap(ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if bottom == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { bottom: bottom.cast(), used: Cell::new(0) })
    }

    /// Forgets all that was put here.
    pub(super) fn clear(&mut self) {
        if self.used.replace(0) > KEPT {
            // SAFETY: the range is our mapping's, and nobody holds anything in it: that would have borrowed `self`.
            unsafe { libc::madvise(self.bottom.add(KEPT).cast(), SIZE - KEPT, libc::MADV_REMOVE) };
        }
    }

    /// Keeps a value.
    pub(super) fn put<T: Copy>(&self, value: T) -> io::Result<&T> {
        self.list([value].into_iter()).map(|list| &list[0])
    }

    /// Keeps values one after the other.
    pub(super) fn list<T: Copy>(&self, values: impl ExactSizeIterator<Item = T>) -> io::Result<&[T]> {
        let room = values.len();
        let place = self.room(mem::size_of::<T>().saturating_mul(room), mem::align_of::<T>())?.cast::<T>();
        let mut written = 0;
        for value in values.take(room) {
            // SAFETY: there is room for that many, aligned as they must be, and nobody else's.
            unsafe { place.add(written).write(value) };
            written += 1;
        }
        // SAFETY: so many were just written, and stay until `clear`, which cannot be called while they are borrowed.
        Ok(unsafe { std::slice::from_raw_parts(place, written) })
    }

    /// Keeps what may fail to be made.
    pub(super) fn try_list<T: Copy>(
        &self,
        values: impl ExactSizeIterator<Item = io::Result<T>>,
    ) -> io::Result<&[T]> {
        let values = values.collect::<io::Result<Vec<_>>>()?;
        self.list(values.into_iter())
    }

    pub(super) fn text(&self, text: &CStr) -> io::Result<&CStr> {
        let bytes = self.list(text.to_bytes_with_nul().iter().copied())?;
        CStr::from_bytes_with_nul(bytes).map_err(io::Error::other)
    }

    /// Keeps a program in the form in which it is executed.
    pub(super) fn words(&self, program: &Program) -> io::Result<Words> {
        let call = |candidates: &[CString], argv: &[CString]| {
            Ok::<_, io::Error>(Call { candidates: self.pointers(candidates)?, argv: self.pointers(argv)? })
        };
        let direct = program.direct.as_ref();
        let direct =
            direct.map_or_else(|| call(&[], &[]), |direct| call(&direct.candidates, &direct.argv))?;
        Ok(Words {
            calls: [direct, call(&program.candidates, &program.argv)?],
            env: self.pointers(&program.env)?,
            cwd: self.text(&program.cwd)?.as_ptr(),
        })
    }

    /// A list of texts that ends in a null pointer.
    fn pointers(&self, texts: &[CString]) -> io::Result<*const *const c_char> {
        let texts = texts.iter().map(|text| self.text(text).map(CStr::as_ptr));
        let texts = texts.collect::<io::Result<Vec<_>>>()?;
        let ended: Vec<_> = texts.into_iter().chain([ptr::null()]).collect();
        self.list(ended.into_iter()).map(<[_]>::as_ptr)
    }

    /// Where a stack begins: stacks grow down.
    pub(super) fn stack(&self) -> io::Result<*mut c_void> {
        let bottom = self.room(STACK_SIZE, mem::align_of::<u128>())?;
        // SAFETY: one past the end of that much room.
        Ok(unsafe { bottom.add(STACK_SIZE) }.cast())
    }

    fn room(&self, size: usize, align: usize) -> io::Result<*mut u8> {
        let begin = self.used.get().next_multiple_of(align);
        let end = begin.checked_add(size).filter(|end| *end <= SIZE);
        // What has no room here is too much for the kernel as well.
        self.used.set(end.ok_or_else(|| io::Error::from_raw_os_error(libc::E2BIG))?);
        // SAFETY: `begin` is inside the mapping, or one past its end for nothing at all.
        Ok(unsafe { self.bottom.add(begin) })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that size, and nothing in it is borrowed any more.
        unsafe { libc::munmap(self.bottom.cast(), SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_aligned_and_stays_until_all_is_cleared() {
        let mut arena = Arena::new().unwrap();
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
        let mut arena = Arena::new().unwrap();
        let half = CString::new(vec![b'a'; SIZE / 2]).unwrap();
        assert!(arena.text(&half).is_ok());
        assert_eq!(arena.text(&half).unwrap_err().raw_os_error(), Some(libc::E2BIG));
        arena.clear();
        assert!(arena.text(&half).is_ok());
    }
}
