//! The memory of this machine.
#![expect(clippy::disallowed_methods, reason = "files of the kernel, which no command can write")]

use std::fs;

/// Returns the memory that this process can use at most, in bytes: that of the machine or the limit
/// of its container. Returns `None` if the system does not report it.
pub fn physical_memory() -> Option<u64> {
    let total = fs::read_to_string("/proc/meminfo").ok().and_then(|text| in_meminfo(&text))?;
    // In a container this is the cgroup of the container.
    let given =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(given.map_or(total, |given: u64| given.min(total)))
}

fn in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_bytes() {
        let text = "MemTotal:       24683724 kB\nMemFree:        16292208 kB\n";
        assert_eq!(in_meminfo(text), Some(24_683_724 * 1024));
        assert_eq!(in_meminfo("MemFree: 1 kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory() {
        assert!(physical_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
