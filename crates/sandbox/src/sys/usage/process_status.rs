//! Reads the size of a process from `/proc/PID/status`.

use super::super::proc_files::{self, ProcReadError, number_after};

/// The size of a process that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStatus {
    pub(crate) threads: u64,
    /// Memory that it shares with no other, also in swap, and its page tables.
    pub(crate) own_bytes: u64,
    /// All that it has mapped.
    pub(crate) mapped_bytes: u64,
}

impl ProcessStatus {
    /// Reads it; nothing if the process has ended.
    pub(in crate::sys) fn read(pid: u32) -> Result<Option<Self>, ProcReadError> {
        let mut status = None;
        match proc_files::read(pid, b"/status", |text| status = parse(text)) {
            Err(ProcReadError::Gone) => Ok(None),
            Err(unread) => Err(unread),
            Ok(()) => {
                let (status, is_over) = status.ok_or(ProcReadError::Failed(libc::EBADMSG))?;
                Ok((!is_over).then_some(status))
            }
        }
    }
}

/// The size, and whether the process has ended; nothing of what is no whole status. A process that
/// is ending has no memory any more, and no lines about it. Those stand before `Threads`: where
/// that is, they are all there.
pub(crate) fn parse(text: &[u8]) -> Option<(ProcessStatus, bool)> {
    let threads = number_after(text, b"\nThreads:")?;
    let state = text_after(text, b"\nState:\t")?.first().copied()?;
    let bytes = |label| number_after(text, label).unwrap_or(0).saturating_mul(1024);
    let own_bytes = [b"\nRssAnon:".as_slice(), b"\nVmSwap:", b"\nVmPTE:"].map(bytes).into_iter().sum();
    let status = ProcessStatus { threads: threads.max(1), own_bytes, mapped_bytes: bytes(b"\nVmSize:") };
    Some((status, proc_files::is_over(state)))
}

fn text_after<'a>(text: &'a [u8], label: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    text.get(at + label.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_anonymous_memory_swap_and_page_tables() {
        let text = b"Name:\tx\nState:\tS (sleeping)\nVmSize:\t 900 kB\nRssAnon:\t 100 kB\nVmPTE:\t 20 kB\n\
            VmSwap:\t 3 kB\nThreads:\t4\n";
        let status = ProcessStatus { threads: 4, own_bytes: 123 * 1024, mapped_bytes: 900 * 1024 };
        assert_eq!(parse(text), Some((status, false)));
        let ended = ProcessStatus { threads: 1, own_bytes: 0, mapped_bytes: 0 };
        assert_eq!(parse(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n"), Some((ended, true)));
        assert_eq!(parse(b"Name:\tx\nState:\tS (sleeping)\nRssAnon:\t 100 kB\n"), None, "it is cut off");
    }

    #[test]
    fn a_real_process_has_a_size_and_one_that_is_gone_has_none() {
        let own = ProcessStatus::read(std::process::id()).unwrap().unwrap();
        assert!(own.threads > 0 && own.own_bytes > 0 && own.mapped_bytes > own.own_bytes, "{own:?}");
        assert_eq!(ProcessStatus::read(u32::MAX), Ok(None));
    }
}
