//! Properties of the parsers of what commands write or choose, for the fuzz targets in `fuzz` and
//! for the tests below.
//!
//! Each takes any input, reads it once with the parser and once with a model of what the kernel
//! does, and panics if they differ.

use std::{
    ffi::{OsStr, c_int},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use windlass_contract::{
    grant::{Held, Mechanism},
    host::Exit,
};

use crate::{
    denials,
    secrets::mounts::MountLine,
    sys::{
        connect_broker::{
            MAX_ADDRESS_BYTES,
            address::caller_path,
            send::control::{ControlData, MAX_CONTROL_BYTES},
        },
        namespaces::address_text,
        proc_files::{bits_after, cpu_ticks_in, nth_number, number_after, parent_in, state_in},
        usage::{
            process_status::{self, ProcessStatus},
            shared_memory::{MAX_LINE_BYTES, each_line, mapping},
        },
    },
};

/// The process that a message is sent for.
const PROCESS: u32 = 40;

/// The first of the descriptors that stand for duplicates.
const FIRST_DUPLICATE: c_int = 1000;

/// One control message: level, type and data.
type ControlMessage = (c_int, c_int, Vec<u8>);

/// Control data of a message, as a command hands it to `sendmsg`: the kernel finds in what is sent
/// exactly what was in it, but duplicates for descriptors, and the credentials of the caller.
pub fn control_data(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_CONTROL_BYTES)];
    let mut control = ControlData::from_bytes(bytes);
    let mut next = FIRST_DUPLICATE;
    let translated = control.translate(PROCESS, |numbers, to| {
        let count = numbers.len() / size_of::<c_int>();
        for place in &mut to[..count] {
            *place = next;
            next += 1;
        }
        Ok(count)
    });
    let Some(mut expected) = kernel_messages(bytes) else { return assert!(translated.is_err()) };
    let is = |message: &ControlMessage, kind| message.0 == libc::SOL_SOCKET && message.1 == kind;
    let pid = |message: &ControlMessage| message.2.get(..4).map(<[u8]>::to_vec);
    let own = Some(PROCESS.to_ne_bytes().to_vec());
    let claims = |messages: &[ControlMessage]| -> Vec<_> {
        messages.iter().filter(|message| is(message, libc::SCM_CREDENTIALS)).map(pid).collect()
    };
    if translated.is_err() {
        let descriptors: usize = expected
            .iter()
            .filter(|message| is(message, libc::SCM_RIGHTS))
            .map(|message| message.2.len())
            .sum();
        let is_forged = claims(&expected).iter().any(|claim| *claim != own);
        return assert!(is_forged || descriptors > 253 * 4 || bytes.len() + 32 > MAX_CONTROL_BYTES);
    }
    let mut duplicates = FIRST_DUPLICATE..next;
    for message in expected.iter_mut().filter(|message| is(message, libc::SCM_RIGHTS)) {
        for number in message.2.chunks_exact_mut(4) {
            number.copy_from_slice(&duplicates.next().unwrap_or(-1).to_ne_bytes());
        }
    }
    let sent = kernel_messages(control.bytes());
    let sent = sent.unwrap_or_else(|| panic!("the kernel refuses {:?}", control.bytes()));
    let (kept, added) = sent.split_at(expected.len().min(sent.len()));
    assert_eq!(kept, expected);
    assert_eq!(added.len(), usize::from(claims(&expected).is_empty()), "{added:?}");
    let claims = claims(&sent);
    assert!(!claims.is_empty() && claims.iter().all(|claim| *claim == own), "{claims:?}");
}

/// Walks control data as the kernel does (`for_each_cmsghdr`, `CMSG_OK`); nothing if it would
/// refuse it.
fn kernel_messages(bytes: &[u8]) -> Option<Vec<ControlMessage>> {
    const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();
    let (mut messages, mut at) = (Vec::new(), 0_usize);
    while bytes.len() >= HEADER_BYTES && at <= bytes.len() - HEADER_BYTES {
        let rest = &bytes[at..];
        let length = usize::from_ne_bytes(rest[..8].try_into().ok()?);
        let word = |at: usize| rest[at..at + 4].try_into().ok().map(c_int::from_ne_bytes);
        if length < HEADER_BYTES || length > rest.len() {
            return None;
        }
        messages.push((word(8)?, word(12)?, rest[HEADER_BYTES..length].to_vec()));
        at += length.next_multiple_of(align_of::<libc::cmsghdr>());
    }
    Some(messages)
}

/// The address of a local socket: its path is the caller's, and ends in a zero.
pub fn socket_address(thread: u32, address: &[u8]) {
    let address = &address[..address.len().min(MAX_ADDRESS_BYTES)];
    let text = address_text(address);
    assert!(!text.contains('\0') && text.len() <= 3 * MAX_ADDRESS_BYTES);
    let path = address.get(2..).unwrap_or_default();
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let expected = match path.strip_prefix(b"/proc/self") {
        Some(rest) => [format!("/proc/{thread}").as_bytes(), rest].concat(),
        None => path.to_vec(),
    };
    let opened = caller_path(thread, path);
    assert!(opened.starts_with(&expected) && opened[expected.len()..].iter().all(|byte| *byte == 0));
    assert!(opened.len() > expected.len());
}

/// Files of `/proc` about a process with this name: whatever it is, the numbers behind it are
/// found.
pub fn process_files(name: &[u8], numbers: [u32; 6]) {
    // `TASK_COMM_LEN` without the zero.
    let name: Vec<_> = name.iter().copied().filter(|byte| *byte != 0).take(15).collect();
    let [parent, user, system, children, waited, threads] = numbers;
    let behind = format!(
        ") S {parent} 7 7 0 -1 4194560 1 2 3 4 {user} {system} {children} {waited} 20 0 {threads} 0 99 1 2"
    );
    let stat = [b"7 (", &name[..], behind.as_bytes()].concat();
    let ticks = [user, system, children, waited].into_iter().map(u64::from).sum();
    assert_eq!(state_in(&stat), Some(b'S'));
    assert_eq!(parent_in(&stat), Some(parent.into()));
    assert_eq!(cpu_ticks_in(&stat), Some(ticks));
    let behind = format!(
        "\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{parent}\nFDSize:\t{user}\nVmSize:\t  {children} kB\n\
         RssAnon:\t  {waited} kB\nVmPTE:\t  1 kB\nVmSwap:\t  {system} kB\nThreads:\t{threads}\n\
         SigPnd:\t{threads:016x}\n"
    );
    let status = [b"Name:\t", &escape(&name, b"\n\\")[..], behind.as_bytes()].concat();
    assert_eq!(number_after(&status, b"\nTgid:\t"), Some(parent.into()));
    assert_eq!(number_after(&status, b"\nFDSize:"), Some(user.into()));
    let bytes = |kilobytes: u32| u64::from(kilobytes) * 1024;
    let size = ProcessStatus {
        threads: u64::from(threads).max(1),
        own_bytes: bytes(waited) + bytes(1) + bytes(system),
        mapped_bytes: bytes(children),
    };
    assert_eq!(process_status::parse(&status), Some((size, false)));
    assert_eq!(bits_after(&status, b"\nSigPnd:\t"), Some(threads.into()));
    assert_eq!(nth_number(&stat, 0), Some(7));
}

/// `/proc/PID/maps` with mapped files of these names, read in pieces of these lengths: every line
/// is read as what it is, and no name is read as a line.
pub fn mappings(names: &[Vec<u8>], pieces: &[u16]) {
    let device = libc::makedev(0, 1);
    let (mut text, mut expected) = (Vec::new(), Vec::new());
    for (inode, name) in names.iter().enumerate() {
        let inode = inode as u64 + 1;
        text.extend_from_slice(format!("1000-3000 rw-s 00001000 00:01 {inode}      /").as_bytes());
        text.extend_from_slice(&escape(name, b"\n"));
        text.push(b'\n');
        expected.extend((!name.starts_with(b"SYSV")).then_some((inode, 0x3000)));
    }
    let (mut rest, mut found) = (&text[..], Vec::new());
    let mut pieces = pieces.iter().cycle();
    let read = |room: &mut [u8]| -> Result<usize, ()> {
        let piece = pieces.next().map_or(usize::MAX, |piece| usize::from(*piece).max(1));
        let length = piece.min(room.len()).min(rest.len());
        room[..length].copy_from_slice(&rest[..length]);
        rest = &rest[length..];
        Ok(length)
    };
    let read = each_line(read, |line| {
        assert!(line.len() <= MAX_LINE_BYTES && !line.contains(&b'\n'));
        found.extend(mapping(line, device));
    });
    assert_eq!(read, Ok(()));
    assert_eq!(found, expected);
}

/// A line of `/proc/self/mountinfo` with these paths is read back as they are.
pub fn mount_line(root: &[u8], point: &[u8]) {
    let line = [
        b"36 35 98:0 ",
        &escape(root, b" \t\n\\")[..],
        b" ",
        &escape(point, b" \t\n\\"),
        b" rw - ext4 /dev/x rw",
    ];
    let path = |bytes: &[u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    let expected = MountLine { device: b"98:0".to_vec(), root: path(root), point: path(point) };
    assert_eq!(MountLine::parse(&line.concat()), Some(expected));
    // Any bytes at all may be no line, and do no harm.
    drop(MountLine::parse(point));
}

/// Escapes bytes in octal, as the kernel's `seq_path` and `seq_escape` do.
fn escape(bytes: &[u8], special: &[u8]) -> Vec<u8> {
    let escaped = bytes.iter().flat_map(|byte| {
        if special.contains(byte) { format!("\\{byte:03o}").into_bytes() } else { vec![*byte] }
    });
    escaped.filter(|byte| *byte != 0).collect()
}

/// The output of a command that failed: no denial comes of text alone, and what may name a path is
/// bounded and one line.
pub fn denied_output(output: &[u8]) {
    let offline = Held { writable: vec!["/w".into()], ..Held::by(Mechanism::Namespaces) };
    let mut found = Vec::new();
    denials::name_host(&mut found, Exit::Code(1), (output, &[]), &offline);
    assert_eq!(found, []);
    let text = String::from_utf8_lossy(output);
    for candidate in denials::candidates(output) {
        assert!(!candidate.is_empty() && !candidate.contains(char::is_control));
        assert!(text.contains(&candidate), "{candidate}");
    }
    let without_broker = Held::by(Mechanism::Landlock);
    denials::name_host(&mut found, Exit::Code(1), (output, &[]), &without_broker);
    assert!(found.len() <= 1 && found.iter().all(|denial| denial.what.len() <= 253));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Control data in which messages are likely: their parts, cut anywhere.
    fn any_control_data() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![Just(1_u32), Just(2), Just(PROCESS), 0..64_u32, any::<u32>()];
        let length = prop_oneof![16..48_u64, any::<u64>()];
        let message = (length, word.clone(), word.clone(), prop::collection::vec(word, 0..6));
        let bytes = message.prop_map(|(length, level, kind, data)| {
            let words = [level, kind].into_iter().chain(data).flat_map(u32::to_ne_bytes);
            length.to_ne_bytes().into_iter().chain(words).collect::<Vec<_>>()
        });
        (prop::collection::vec(bytes, 0..5), 0..200_usize).prop_map(|(messages, length)| {
            let mut bytes = messages.concat();
            bytes.truncate(length);
            bytes
        })
    }

    proptest! {
        #[test]
        fn the_kernel_finds_in_control_data_what_we_put_there(bytes in any_control_data()) {
            control_data(&bytes);
        }

        #[test]
        fn an_address_leads_where_it_leads_the_caller(
            thread in any::<u32>(),
            path in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..140),
                "/proc/self/.{0,40}".prop_map(String::into_bytes),
            ],
        ) {
            socket_address(thread, &[&[1, 0], &path[..]].concat());
        }

        #[test]
        fn no_name_of_a_process_hides_its_numbers(
            name in prop_oneof![prop::collection::vec(any::<u8>(), 0..20), "[) S0-9\n]{0,15}".prop_map(String::into_bytes)],
            numbers in any::<[u32; 6]>(),
        ) {
            process_files(&name, numbers);
        }

        #[test]
        fn no_name_of_a_file_is_read_as_a_mapping(
            names in prop::collection::vec((prop_oneof![0..40_usize, 8000..9000_usize], any::<u8>()), 0..6),
            pieces in prop::collection::vec(any::<u16>(), 0..5),
        ) {
            let forged = b" 0-ffff rw-s 0 00:01 42 /x";
            let name = |(length, byte): (usize, u8)| {
                [&vec![byte.max(1); length][..], forged].concat().into_iter().collect()
            };
            let names: Vec<_> = names.into_iter().map(name).collect();
            mappings(&names, &pieces);
        }

        #[test]
        fn mount_points_are_read_byte_by_byte(
            root in prop::collection::vec(1_u8.., 0..20),
            point in prop::collection::vec(1_u8.., 0..20),
        ) {
            mount_line(&root, &point);
        }

        #[test]
        fn no_output_alone_makes_a_denial(
            output in prop::collection::vec(
                prop_oneof![
                    Just("/w/a"), Just("/etc/x"), Just("/"), Just(": "), Just("'"), Just("\n"), Just("\u{2018}"),
                    Just("Permission denied"), Just("Read-only file system"), Just("EAI_AGAIN"),
                ],
                0..20,
            ),
        ) {
            denied_output(output.concat().as_bytes());
        }
    }
}
