//! The user and group ids that commands on a layer have.
//!
//! An overlay copies a file up with its owner, and fails with `EOVERFLOW` where the owner is not
//! mapped. An ordinary user can map only itself. Root can map every id it has.

use std::{fs, ops::RangeInclusive};

/// The ids that exist in a user namespace, each with the same number as outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdMaps {
    users: Vec<RangeInclusive<u32>>,
    groups: Vec<RangeInclusive<u32>>,
}

/// `CAP_SETGID` and `CAP_SETUID` of `<linux/capability.h>`, as bits.
const CAN_MAP_OTHERS: u64 = 1 << 6 | 1 << 7;

impl IdMaps {
    /// The ids for commands on a layer: all of this process's own namespace if it may map them,
    /// else its own.
    #[expect(clippy::disallowed_methods, reason = "files of the kernel below /proc")]
    pub fn for_layers() -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let own = || Self {
            users: vec![user.as_raw()..=user.as_raw()],
            groups: vec![group.as_raw()..=group.as_raw()],
        };
        if !can_map_others() {
            return own();
        }
        let read = |path: &str| fs::read_to_string(path).ok().and_then(|text| parse(&text));
        match (read("/proc/self/uid_map"), read("/proc/self/gid_map")) {
            (Some(users), Some(groups)) => Self { users, groups },
            _ => own(),
        }
    }

    /// Tells whether a file of this user and group can be changed on a layer.
    pub fn contain(&self, user: u32, group: u32) -> bool {
        self.users.iter().any(|ids| ids.contains(&user)) && self.groups.iter().any(|ids| ids.contains(&group))
    }

    /// Tells whether there are more ids than one of each.
    pub(crate) fn has_others(&self) -> bool {
        [&self.users, &self.groups]
            .iter()
            .any(|ids| ids.len() > 1 || ids.iter().any(|ids| ids.start() != ids.end()))
    }

    /// Returns the lines for `uid_map` and `gid_map`.
    pub(crate) fn lines(&self) -> [String; 2] {
        let line = |ids: &RangeInclusive<u32>| {
            format!("{start} {start} {}\n", u64::from(ids.end() - ids.start()) + 1, start = ids.start())
        };
        [&self.users, &self.groups].map(|ids| ids.iter().map(line).collect())
    }
}

/// Reads a map: each line has the first id inside, the first outside, and the length of the range.
fn parse(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |line: &str| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (first, _, count) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        let last = first.checked_add(count.checked_sub(1)?)?;
        Some(u32::try_from(first).ok()?..=u32::try_from(last).ok()?)
    };
    text.lines().map(range).collect()
}

/// Tells whether this process has the capabilities to map ids of others.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel below /proc")]
fn can_map_others() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    effective & CAN_MAP_OTHERS == CAN_MAP_OTHERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written_with_the_same_numbers_on_both_sides() {
        let users = parse("         0     100000      65536\n     65536          1          1\n").unwrap();
        assert_eq!(users, [0..=65535, 65536..=65536]);
        let maps = IdMaps { users, groups: vec![7..=7] };
        assert_eq!(maps.lines(), ["0 0 65536\n65536 65536 1\n".to_owned(), "7 7 1\n".to_owned()]);
        assert!(
            maps.has_others() && maps.contain(65536, 7) && !maps.contain(65537, 7) && !maps.contain(0, 8)
        );
        assert_eq!(parse("0 0 4294967295\n"), Some(vec![0..=u32::MAX - 1]));
        assert_eq!(parse("0 0 0\n"), None);
    }
}
