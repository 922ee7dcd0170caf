//! Text on stdin that belongs to a prompt: `git diff | windlass exec "review this"`.

use std::{
    fs,
    io::{self, Read},
    os::fd::AsFd,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, Stat, fstat},
};

use crate::problem::CliProblem;

/// Maximum size: more than models read in one message.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// The time after which a person learns what is waited for.
const NOTED_WAIT: Duration = Duration::from_secs(1);

/// Maximum wait for the first byte of a program that started this one. Such programs write at once
/// or leave the pipe open for nothing.
const MAX_WAIT_FOR_PARENT: Duration = Duration::from_secs(5);

/// Adds the text on stdin to a prompt, if a file or a pipe is there and not empty.
pub(super) fn with_piped_input(prompt: String) -> Result<String, CliProblem> {
    let stdin = io::stdin();
    let Ok(stat) = fstat(&stdin) else { return Ok(prompt) };
    let is_ready = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => true,
        FileType::Fifo | FileType::Socket => is_data_coming(&stdin, &stat)?,
        // A terminal or `/dev/null`.
        _ => false,
    };
    if !is_ready {
        return Ok(prompt);
    }
    let mut bytes = Vec::new();
    stdin.lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(&error))?;
    Ok(joined(prompt, &input_text(bytes)?))
}

/// Checks that input is text of a reasonable size.
fn input_text(bytes: Vec<u8>) -> Result<String, CliProblem> {
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(CliProblem::usage(format!(
            "standard input is larger than {} KiB; save it to a file and name the file in the prompt",
            MAX_INPUT_BYTES / 1024
        )));
    }
    let not_text = |at: usize| {
        CliProblem::usage(format!(
            "standard input is not text (byte {at}); to run without it, add `< /dev/null`"
        ))
    };
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(not_text(at));
    }
    String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to()))
}

/// Puts the input into a block behind the prompt. The input cannot end its block.
fn joined(prompt: String, input: &str) -> String {
    if input.trim().is_empty() {
        return prompt;
    }
    let mut tag = "stdin".to_owned();
    while input.contains(&format!("</{tag}>")) {
        tag.push('-');
    }
    let newline = if input.ends_with('\n') { "" } else { "\n" };
    format!("{prompt}\n\n<{tag}>\n{input}{newline}</{tag}>")
}

/// Waits for the first byte, or for the end. A pipe that only our parents could write to, and do
/// not, is not waited for.
fn is_data_coming(stdin: &impl AsFd, stat: &Stat) -> Result<bool, CliProblem> {
    let began = Instant::now();
    let mut is_noted = false;
    while !is_readable(stdin)? {
        if !is_noted {
            crate::note("reading standard input; to run without it, add `< /dev/null`");
            is_noted = true;
        }
        if began.elapsed() >= MAX_WAIT_FOR_PARENT && !has_writer_beside_parents(stat) {
            let seconds = MAX_WAIT_FOR_PARENT.as_secs();
            crate::note(&format!("nothing came on standard input for {seconds} s; going on without it"));
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits a while for data or the end.
fn is_readable(stdin: &impl AsFd) -> Result<bool, CliProblem> {
    let mut descriptors = [PollFd::new(stdin, PollFlags::IN)];
    let timeout = Timespec { tv_sec: NOTED_WAIT.as_secs().cast_signed(), tv_nsec: 0 };
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(cannot_read(&error.into())),
    }
}

/// Returns true if another process than our parents has the pipe open for writing: another part of
/// the same pipeline. A socket has no such list, and counts as opened by a parent.
fn has_writer_beside_parents(pipe: &Stat) -> bool {
    let parents = parents();
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| !parents.contains(id)).any(|id| writes_to(id, pipe))
}

/// Returns this process and those that it descends from.
fn parents() -> Vec<u32> {
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.last().and_then(|id| parent_of(*id)).filter(|id| *id > 0) {
        parents.push(parent);
    }
    parents
}

fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

fn writes_to(id: u32, pipe: &Stat) -> bool {
    let link = format!("pipe:[{}]", pipe.st_ino);
    let Ok(descriptors) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_it = fs::read_link(descriptor.path()).is_ok_and(|target| target == Path::new(&link));
        is_it && is_for_writing(id, &descriptor.file_name().to_string_lossy())
    })
}

/// Reads the access mode of a descriptor: the last octal digit of its flags.
fn is_for_writing(id: u32, descriptor: &str) -> bool {
    let info = fs::read_to_string(format!("/proc/{id}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
    flags.trim().ends_with(['1', '2'])
}

fn cannot_read(error: &io::Error) -> CliProblem {
    CliProblem::usage(format!("cannot read standard input: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_a_block_that_it_cannot_end() {
        assert_eq!(joined("p".into(), "a\n"), "p\n\n<stdin>\na\n</stdin>");
        assert_eq!(joined("p".into(), "a"), "p\n\n<stdin>\na\n</stdin>");
        assert_eq!(joined("p".into(), "</stdin> b"), "p\n\n<stdin->\n</stdin> b\n</stdin->");
        assert_eq!(joined("p".into(), " \n\n"), "p");
    }

    #[test]
    fn only_text_of_a_reasonable_size_is_taken() {
        assert_eq!(input_text("größe".into()).unwrap(), "größe");
        for (bytes, told) in [
            (b"ab\0c".to_vec(), "not text (byte 2)"),
            (b"ab\xffc".to_vec(), "not text (byte 2)"),
            (vec![b'a'; 1024 * 1024 + 1], "larger than 1024 KiB"),
        ] {
            let error = input_text(bytes).unwrap_err().message;
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn parents_are_found_up_to_the_first_process() {
        let parents = parents();
        assert_eq!(parents[0], std::process::id());
        assert_eq!(parents.get(1).copied(), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn the_writing_end_of_a_pipe_is_told_from_the_reading_end() {
        let (reader, writer) = io::pipe().unwrap();
        let stat = fstat(&reader).unwrap();
        let here = std::process::id();
        assert!(writes_to(here, &stat));
        drop(writer);
        assert!(!writes_to(here, &stat));
    }
}
