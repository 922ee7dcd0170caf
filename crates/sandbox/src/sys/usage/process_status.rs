//! What `/proc/PID/status` tells of the size of a process.

use super::super::proc_files::{self, Unread, number_after};

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
    pub(in crate::sys) fn read(pid: u32) -> Result<Option<Self>, Unread> {
        let mut status = None;
        match proc_files::read(pid, b"/status", |text| status = parse(text)) {
            Err(Unread::Gone) => Ok(None),
            Err(unread) => Err(unread),
            Ok(()) => status.ok_or(Unread::Failed(libc::EBADMSG)),
        }
    }
}

/// The outer option is none for what is no whole status, the inner one for a process that has ended. A process that is
/// ending has no memory any more, and no lines about it. Those stand before `Threads`: where that is, they are all there.
pub(crate) fn parse(text: &[u8]) -> Option<Option<ProcessStatus>> {
    let threads = number_after(text, b"\nThreads:")?;
    let state = text_after(text, b"\nState:\t")?.first().copied()?;
    let bytes = |label| number_after(text, label).unwrap_or(0).saturating_mul(1024);
    let own_bytes = bytes(b"\nRssAnon:".as_slice()) + bytes(b"\nVmSwap:") + bytes(b"\nVmPTE:");
    let status = ProcessStatus { threads: threads.max(1), own_bytes, mapped_bytes: bytes(b"\nVmSize:") };
    Some((!proc_files::is_over(state)).then_some(status))
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
        assert_eq!(parse(text), Some(Some(status)));
        assert_eq!(parse(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n"), Some(None), "it has ended");
        assert_eq!(parse(b"Name:\tx\nState:\tS (sleeping)\nRssAnon:\t 100 kB\n"), None, "it is cut off");
    }

    #[test]
    fn a_real_process_has_a_size_and_one_that_is_gone_has_none() {
        let own = ProcessStatus::read(std::process::id()).unwrap().unwrap();
        assert!(own.threads > 0 && own.own_bytes > 0 && own.mapped_bytes > own.own_bytes, "{own:?}");
        assert_eq!(ProcessStatus::read(u32::MAX), Ok(None));
    }
}
