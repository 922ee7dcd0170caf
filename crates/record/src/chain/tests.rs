//! Every change to a file is detected, with its line.

use std::{fs, path::PathBuf, sync::LazyLock};

use proptest::prelude::*;
use tempfile::TempDir;
use windlass_contract::{
    Item, Journal,
    id::ThreadId,
    item::Role,
    journal::{Record, SessionMeta},
};
use windlass_fakes::clean;

use super::*;
use crate::{SessionFile, Which, new_thread_id};

struct Written {
    home: TempDir,
    id: ThreadId,
    path: PathBuf,
    lines: Vec<Vec<u8>>,
}

/// A session of ten lines.
fn written() -> Written {
    let home = tempfile::tempdir().unwrap();
    let meta = SessionMeta {
        id: new_thread_id(),
        cwd: "/w".into(),
        version: "0".into(),
        instructions: String::new(),
        parent: None,
    };
    let file = SessionFile::create(home.path(), &meta).unwrap();
    for number in 2..=10 {
        file.append(&Record::Item(clean(&Item::message(Role::User, format!("line {number}"))))).unwrap();
    }
    let path = file.path().to_owned();
    let bytes = fs::read(&path).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    Written { home, id: meta.id, path, lines }
}

fn audited(lines: &[Vec<u8>]) -> ChainAudit {
    audit(BufReader::new(lines.concat().as_slice()), None).unwrap()
}

/// Returns a line as a version without checksums wrote it.
fn unsealed(line: &[u8]) -> Vec<u8> {
    [&line[..line.len() - CHECKSUM_BYTES], b"}\n"].concat()
}

fn broken_at(lines: &[Vec<u8>]) -> Option<u64> {
    audited(lines).broken.map(|broken| broken.line)
}

#[test]
fn a_file_nobody_touched_is_whole() {
    let written = written();
    let audit = verify(&written.path, Some(LineHash::new(&written.lines[4]))).unwrap();
    let bytes = fs::metadata(&written.path).unwrap().len();
    let head = ChainHead { lines: 10, bytes, link: LineHash::new(&written.lines[9]) };
    assert_eq!(audit, ChainAudit { head, unchained: 0, broken: None, torn: false, passed: true });
}

#[test]
fn the_first_line_that_does_not_follow_is_named() {
    let lines = written().lines;
    let with = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        broken_at(&lines)
    };
    let changed = String::from_utf8(lines[4].clone()).unwrap().replace("line 5", "line V").into_bytes();
    assert_eq!(with(&|lines| lines[4].clone_from(&changed)), Some(5), "changed");
    let changed = unsealed(&changed);
    assert_eq!(with(&|lines| lines[4].clone_from(&changed)), Some(6), "changed, without a checksum");
    assert_eq!(with(&|lines| drop(lines.remove(4))), Some(5), "removed");
    assert_eq!(with(&|lines| drop(lines.remove(0))), Some(1), "removed at the beginning");
    assert_eq!(with(&|lines| lines.swap(4, 5)), Some(5), "moved");
    assert_eq!(with(&|lines| lines.insert(4, lines[4].clone())), Some(6), "repeated");
    assert_eq!(
        with(&|lines| lines.insert(4, b"{\"type\":\"event\",\"payload\":{}}\n".to_vec())),
        Some(5),
        "added"
    );
    assert_eq!(with(&|lines| lines[4] = b"garbage\n".to_vec()), Some(5), "garbled");
}

#[test]
fn lines_cut_from_the_end_are_seen_by_whoever_remembers_the_head() {
    let mut lines = written().lines;
    let head = audited(&lines).head;
    lines.truncate(7);
    let cut = audit(BufReader::new(lines.concat().as_slice()), Some(head.link)).unwrap();
    assert_eq!((cut.broken, cut.passed, cut.head.lines), (None, false, 7));
}

#[test]
fn a_line_torn_by_a_kill_and_mended_by_resuming_leaves_the_chain_whole() {
    let written = written();
    let mut bytes = fs::read(&written.path).unwrap();
    bytes.truncate(bytes.len() - 10);
    fs::write(&written.path, bytes).unwrap();
    let torn = verify(&written.path, None).unwrap();
    assert_eq!((torn.torn, torn.broken, torn.head.lines), (true, None, 9));

    let (file, _session) = SessionFile::resume(written.home.path(), &Which::Id(written.id)).unwrap();
    file.append(&Record::Item(clean(&Item::message(Role::User, "on we go")))).unwrap();
    let mended = verify(&written.path, Some(torn.head.link)).unwrap();
    assert_eq!((mended.torn, mended.broken, mended.head.lines, mended.passed), (false, None, 10, true));
}

#[test]
fn a_session_from_before_the_chain_says_so_and_is_chained_from_its_next_line_on() {
    let written = written();
    let bare = String::from_utf8(written.lines.concat()).unwrap();
    let bare: String = bare
        .lines()
        .map(|line| {
            let (before, after) = line.split_once("\"prev\":\"").unwrap();
            format!("{before}{}}}\n", &after[66..].split_once(",\"sum\":").unwrap().0)
        })
        .collect();
    fs::write(&written.path, bare).unwrap();
    let (file, session) = SessionFile::resume(written.home.path(), &Which::Id(written.id)).unwrap();
    assert_eq!(session.repaired, []);
    file.append(&Record::Item(clean(&Item::message(Role::User, "on we go")))).unwrap();
    let audit = verify(&written.path, None).unwrap();
    assert_eq!((audit.unchained, audit.broken, audit.head.lines), (10, None, 11));
}

#[test]
fn hashes_are_read_as_they_are_written() {
    let link = LineHash::new(b"x");
    assert_eq!(LineHash::parse(&link.to_string()), Some(link));
    for text in ["", "zz", &"0".repeat(63), &"é".repeat(32), &"+1".repeat(32)] {
        assert_eq!(LineHash::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_byte_can_be_changed_unseen(at in any::<prop::sample::Index>(), byte: u8) {
        static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| written().lines);
        let mut bytes = LINES.concat();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let audit = audit(BufReader::new(bytes.as_slice()), None).unwrap();
        prop_assert!(audit.broken.is_some() || audit.torn);
    }
}
