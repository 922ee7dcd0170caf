//! Real programs in sessions, on real terminals, held in every way this machine has.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::Arc,
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tokio::time::timeout;
use windlass_contract::{
    Effects, Host, Sandbox,
    grant::{Confinement, Limits, Mechanism, Quota, SandboxRules},
    host::{Command, Exit, HostError, Keyboard, Session, Whole},
    report::ProcessReport,
};
use windlass_fakes::issue_grant;
use windlass_host::{Machine, Window};

/// Far more time than any of these programs needs: a test that takes longer hangs.
const FOREVER: Duration = Duration::from_mins(1);

/// Interval to poll if a program waits for input: no event reports it.
const LOOK: Duration = Duration::from_millis(10);

/// A workspace on a machine, and how it is held.
struct World {
    place: TempDir,
    machine: Machine,
    window: Window,
    rung: Mechanism,
}

impl World {
    /// One for each way of holding that this machine has.
    fn all() -> Vec<Self> {
        [Mechanism::Unconfined, Mechanism::Namespaces, Mechanism::Landlock]
            .into_iter()
            .filter_map(Self::on)
            .collect()
    }

    fn on(rung: Mechanism) -> Option<Self> {
        let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TERM", "dumb"), ("PS1", "ready> ")];
        let machine = Machine::new(variables.map(|(name, value)| (name.into(), value.into())).into());
        let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        let found = machine.diagnose().rung;
        if rung != Mechanism::Unconfined && found != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`, but {found:?}", rung.name());
            return None;
        }
        let window = Window::default();
        let machine = machine.with_window(window.clone());
        Some(Self { place: tempfile::tempdir_in("/var/tmp").unwrap(), machine, window, rung })
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn host(&self, limits: Limits) -> Arc<dyn Host> {
        let confinement = match self.rung {
            Mechanism::Unconfined => Confinement::Unconfined,
            _ => Confinement::Sandboxed(SandboxRules {
                writable: vec![self.path().to_owned()],
                ..SandboxRules::default()
            }),
        };
        let grant = issue_grant(self.path().to_owned(), &Effects::none(), limits, confinement);
        self.machine.confine(&grant).unwrap()
    }

    async fn open(&self, keyboard: Keyboard, argv: &[&str]) -> Talk {
        self.try_open(Limits::default(), keyboard, argv).await.unwrap()
    }

    async fn try_open(&self, limits: Limits, keyboard: Keyboard, argv: &[&str]) -> Result<Talk, HostError> {
        let argv = argv.iter().map(ToString::to_string).collect();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let session = self.host(limits).open(&command, keyboard, Arc::new(|_| {})).await?;
        Ok(Talk { session, heard: String::new(), printed_bytes: 0, rung: self.rung })
    }

    /// Makes the named pipe `tether` and tells when every process that held it open for writing is
    /// gone.
    fn tether(&self) -> Receiver<()> {
        let path = self.path().join("tether");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (gone, told) = mpsc::channel();
        thread::spawn(move || {
            fs::read(path).unwrap();
            gone.send(()).unwrap();
        });
        told
    }
}

/// A conversation with a program.
struct Talk {
    session: Arc<dyn Session>,
    heard: String,
    printed_bytes: u64,
    rung: Mechanism,
}

impl Talk {
    async fn say(&self, text: &str) {
        assert_eq!(self.session.write(text.as_bytes()).await.unwrap(), text.len());
    }

    /// Listens until something is heard that was not heard before.
    async fn hear(&mut self, expected: &str) {
        let heard = timeout(FOREVER, async {
            loop {
                self.heard += &String::from_utf8_lossy(&self.session.take(usize::MAX).await.bytes);
                if let Some(at) = self.heard.find(expected) {
                    self.heard.drain(..at + expected.len());
                    return;
                }
                assert_eq!(self.session.ended(), None, "{:?}: heard only {:?}", self.rung, self.heard);
                self.printed_bytes = self.session.progress(self.printed_bytes).await;
            }
        });
        assert!(heard.await.is_ok(), "{:?}: no {expected:?} in {:?}", self.rung, self.heard);
    }

    async fn waits(&self) {
        let waits = timeout(FOREVER, async {
            while !self.session.waits_for_input().await {
                tokio::time::sleep(LOOK).await;
            }
        });
        assert!(waits.await.is_ok(), "{:?}: it is not seen to wait", self.rung);
    }

    /// Waits until it has printed this number of bytes in all.
    async fn prints(&mut self, bytes: usize) {
        let printed = timeout(FOREVER, async {
            while self.printed_bytes < bytes as u64 {
                self.printed_bytes = self.session.progress(self.printed_bytes).await;
            }
        });
        assert!(printed.await.is_ok(), "{:?}: only {} bytes", self.rung, self.printed_bytes);
    }

    async fn ended(&self) -> ProcessReport {
        let ended = timeout(FOREVER, async {
            let mut printed_bytes = self.printed_bytes;
            loop {
                if let Some(ended) = self.session.ended() {
                    return ended;
                }
                printed_bytes = self.session.progress(printed_bytes).await;
            }
        });
        ended.await.unwrap()
    }

    /// Returns the end of the session and its remaining output.
    async fn end(&mut self) -> (ProcessReport, String) {
        let ended = self.ended().await;
        self.heard += &String::from_utf8_lossy(&self.session.take(usize::MAX).await.bytes);
        (ended, std::mem::take(&mut self.heard))
    }
}

const SHELL: [&str; 4] = ["bash", "--norc", "--noprofile", "-i"];

#[tokio::test]
async fn time_and_output_of_a_session_can_be_limited() {
    for world in World::all() {
        let open =
            |quota, argv| world.try_open(Limits { quota, ..Limits::default() }, Keyboard::Absent, argv);
        let output = Quota { output_bytes: Some(4), ..Quota::default() };
        let (ended, said) = open(output, &["yes"]).await.unwrap().end().await;
        assert_eq!((ended.exit, said.as_str()), (Exit::KILLED, "y\ny\n"), "{:?}", world.rung);
        assert_eq!(ended.denials.len(), 1, "{:?}: {:?}", world.rung, ended.denials);
        let time = Quota { wall_seconds: Some(1), ..Quota::default() };
        let (ended, _) = open(time, &["sleep", "60"]).await.unwrap().end().await;
        assert_eq!(ended.exit, Exit::TimedOut, "{:?}", world.rung);
    }
}

#[tokio::test]
async fn what_is_typed_is_read_and_what_is_printed_is_heard() {
    for world in World::all() {
        let mut talk =
            world.open(Keyboard::Terminal, &["sh", "-c", "read name; echo hello, $name; exit 3"]).await;
        talk.waits().await;
        talk.say("you\n").await;
        let (ended, said) = talk.end().await;
        assert_eq!((ended.exit, said.as_str()), (Exit::Code(3), "you\r\nhello, you\r\n"), "{:?}", world.rung);
        assert_eq!(talk.session.held().rung, world.rung);
    }
}

#[tokio::test]
async fn a_program_finds_a_terminal_of_the_windows_size() {
    for world in World::all() {
        let script = "stty size; python3 -c 'import os
for fd in 0, 1, 2, os.open(\"/dev/tty\", os.O_RDWR): assert os.isatty(fd)
print(\"all\")'";
        world.window.resize(33, 99);
        let (ended, said) = world.open(Keyboard::Terminal, &["sh", "-c", script]).await.end().await;
        assert_eq!((ended.exit, said.as_str()), (Exit::Code(0), "33 99\r\nall\r\n"), "{:?}", world.rung);
    }
}

#[tokio::test]
async fn a_window_that_changes_is_told_to_the_programs_in_it() {
    for world in World::all() {
        let script = "trap 'stty size; exit 6' WINCH; stty size; while :; do sleep 0.05; done";
        let mut talk = world.open(Keyboard::Terminal, &["sh", "-c", script]).await;
        talk.hear("24 80\r\n").await;
        world.window.resize(50, 132);
        let (ended, said) = talk.end().await;
        assert_eq!((ended.exit, said.as_str()), (Exit::Code(6), "50 132\r\n"), "{:?}", world.rung);
    }
}

#[tokio::test]
async fn each_piece_of_a_long_output_is_whole_in_a_file_of_its_own() {
    for mut world in World::all() {
        let kept = tempfile::tempdir_in("/var/tmp").unwrap();
        world.machine = world.machine.with_output_files(kept.path().to_owned(), 1000);
        let limits = Limits { output_bytes: 100, ..Limits::default() };
        let script = "seq 1 1000; echo first; read go; echo short; read go; seq 1001 2000; echo last; cat";
        let opened = world.try_open(limits, Keyboard::Terminal, &["sh", "-c", script]).await;
        let mut talk = opened.unwrap();
        let numbers =
            |from: u32, to: u32| (from..=to).map(|number| format!("{number}\r\n")).collect::<String>();
        let pieces = [
            numbers(1, 1000) + "first\r\n",
            "\r\nshort\r\n".into(),
            format!("\r\n{}last\r\n", numbers(1001, 2000)),
        ];
        let mut total = 0;
        for (piece, is_long) in pieces.iter().zip([true, false, true]) {
            total += piece.len();
            talk.prints(total).await;
            let printed = talk.session.take(usize::MAX).await;
            assert_eq!(
                (printed.gap.is_some(), printed.whole.is_some()),
                (is_long, is_long),
                "{:?}",
                world.rung
            );
            let all = printed.whole.map_or(String::from_utf8(printed.bytes).unwrap(), file);
            assert_eq!(all, *piece, "{:?}", world.rung);
            talk.say("\n").await;
        }
    }
}

fn file(whole: Whole) -> String {
    match whole {
        Whole::File { path, complete: true, .. } => fs::read_to_string(path).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_keyboard_there_is_neither_input_nor_terminal() {
    for world in World::all() {
        let script = "cat; test -t 0 || test -t 1 || echo none; (: < /dev/tty) 2>/dev/null || echo nowhere";
        let mut talk = world.open(Keyboard::Absent, &["sh", "-c", script]).await;
        assert!(talk.session.write(b"x").await.is_err());
        let (ended, said) = talk.end().await;
        assert_eq!(ended.exit, Exit::Code(0));
        assert_eq!(said, "none\nnowhere\n", "{:?}", world.rung);
    }
}

#[tokio::test]
async fn everyday_programs_that_wait_for_input_are_seen_to() {
    let programs: [&[&str]; 8] = [
        &["cat"],
        &[
            "sh",
            "-c",
            "command -v node > /dev/null && exec node -e 'require(\"readline\").createInterface({input: process.stdin, output: process.stdout}).question(\"name? \", () => {})' || exec cat",
        ],
        &["bash", "-c", "read -s -p 'Password: ' x"],
        &SHELL,
        &["python3", "-q"],
        &["python3", "-c", "input('name? ')"],
        &["sh", "-c", "cat /etc/passwd /etc/passwd /etc/passwd | less"],
        &["vi", "-u", "NONE", "new"],
    ];
    for world in World::all() {
        for program in programs {
            let talk = world.open(Keyboard::Terminal, program).await;
            eprintln!("{:?} {program:?}", world.rung);
            talk.waits().await;
        }
    }
}

#[tokio::test]
async fn a_program_that_works_or_sleeps_or_serves_is_not_said_to_wait() {
    let programs: [&[&str]; 3] = [
        &["sh", "-c", "echo begun; while :; do :; done"],
        &["sh", "-c", "echo begun; sleep 1000"],
        &["sh", "-c", "echo begun; sleep 1000 | cat"],
    ];
    for world in World::all() {
        for program in programs {
            let mut talk = world.open(Keyboard::Terminal, program).await;
            talk.hear("begun").await;
            for _ in 0..20 {
                assert!(!talk.session.waits_for_input().await, "{:?} {program:?}", world.rung);
            }
        }
    }
}

#[tokio::test]
async fn ctrl_c_ends_what_is_in_the_foreground_and_leaves_the_shell() {
    for world in World::all() {
        let mut talk = world.open(Keyboard::Terminal, &SHELL).await;
        talk.hear("ready> ").await;
        // A program of its own tells when it has the terminal.
        talk.say("sh -c 'echo be\"\"gun; exec sleep 1000'\n").await;
        talk.hear("begun\r\n").await;
        talk.say("\x03").await;
        talk.hear("ready> ").await;
        talk.waits().await;
        talk.say("sh -c 'echo be\"\"gun again; exec sleep 1001'\n").await;
        talk.hear("begun again\r\n").await;
        talk.say("\x1a").await;
        talk.hear("Stopped").await;
        talk.hear("ready> ").await;
        talk.waits().await;
        talk.say("kill -9 %1; exec sh -c 'exit 4'\n").await;
        assert_eq!(talk.end().await.0.exit, Exit::Code(4), "{:?}", world.rung);
    }
}

#[tokio::test]
async fn python_answers_line_by_line() {
    for world in World::all() {
        let mut talk = world.open(Keyboard::Terminal, &["python3", "-q"]).await;
        talk.hear(">>> ").await;
        talk.say("6 * 7\n").await;
        talk.hear("42").await;
        talk.waits().await;
        talk.say("exit(5)\n").await;
        assert_eq!(talk.end().await.0.exit, Exit::Code(5), "{:?}", world.rung);
    }
}

#[tokio::test]
async fn a_flood_is_kept_within_bounds_while_nobody_looks() {
    if let Some(world) = World::on(Mechanism::Namespaces) {
        for keyboard in [Keyboard::Terminal, Keyboard::Absent] {
            let limits = Limits { output_bytes: 10_000, ..Limits::default() };
            let flood = "head -c 50000000 /dev/zero | tr '\\0' x; echo end";
            let mut talk = world.try_open(limits, keyboard, &["sh", "-c", flood]).await.unwrap();
            timeout(FOREVER, async {
                while talk.session.ended().is_none() {
                    talk.printed_bytes = talk.session.progress(talk.printed_bytes).await;
                }
            })
            .await
            .unwrap();
            let printed = talk.session.take(usize::MAX).await;
            let last = if keyboard == Keyboard::Terminal { "end\r\n" } else { "end\n" };
            assert_eq!(printed.bytes.len(), 10_000);
            assert!(printed.bytes.ends_with(last.as_bytes()));
            assert_eq!(printed.gap, Some((5_000, 49_990_000 + last.len() as u64)));
            assert_eq!(talk.session.take(usize::MAX).await.bytes, b"");
        }
    }
}

#[tokio::test]
async fn ending_a_session_ends_all_it_started() {
    for world in World::all() {
        let gone = world.tether();
        // Three ways to hide: in the background, in another group, in another session.
        let hide = "exec 9>tether; sleep 1000 & set -m; sleep 1001 & setsid sleep 1002 & echo hidden; cat";
        let mut talk = world.open(Keyboard::Terminal, &["bash", "-c", hide]).await;
        talk.hear("hidden").await;
        timeout(FOREVER, talk.session.end()).await.unwrap();
        assert_eq!(talk.session.ended().unwrap().exit, Exit::Cancelled, "{:?}", world.rung);
        gone.recv_timeout(FOREVER).unwrap();
    }
}

#[tokio::test]
async fn dropping_the_last_handle_kills_it_with_all_it_started() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let gone = world.tether();
    let mut talk = world
        .open(Keyboard::Terminal, &["sh", "-c", "exec 9>tether; setsid sleep 1000 & echo up; cat"])
        .await;
    talk.hear("up").await;
    drop(talk);
    // Not on this thread, which the session's task needs to hear of it.
    tokio::task::spawn_blocking(move || gone.recv_timeout(FOREVER)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_machine_that_closes_ends_every_session_and_names_it() {
    for world in World::all() {
        let done = world.open(Keyboard::Absent, &["true"]).await.end().await.0;
        assert_eq!(done.exit, Exit::Code(0));
        let open = [
            world.open(Keyboard::Terminal, &SHELL).await,
            world.open(Keyboard::Absent, &["sleep", "1000"]).await,
        ];
        assert_eq!(
            timeout(FOREVER, world.machine.close()).await.unwrap(),
            ["bash --norc --noprofile -i", "sleep 1000"]
        );
        assert!(open.iter().all(|talk| talk.session.ended().is_some()));
        assert_eq!(world.machine.close().await, [""; 0]);
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_at_once() {
    for world in World::all() {
        let tried = world.try_open(Limits::default(), Keyboard::Terminal, &["no-such-program"]).await;
        assert!(matches!(tried.map(|_| ()), Err(HostError::Spawn { .. })), "{:?}", world.rung);
    }
}

#[tokio::test]
async fn keys_cannot_be_pressed_from_inside() {
    // TIOCSTI puts characters into the terminal as if they were typed.
    let script = "import fcntl, sys
try: fcntl.ioctl(0, 0x5412, b'x'); print('typed')
except OSError as error: print('refused', error.errno)";
    for world in World::all().into_iter().filter(|world| world.rung != Mechanism::Unconfined) {
        let (_, said) = world.open(Keyboard::Terminal, &["python3", "-c", script]).await.end().await;
        assert_eq!(said, "refused 1\r\n", "{:?}", world.rung);
    }
}

#[tokio::test]
async fn a_program_finds_the_name_of_its_terminal() {
    for world in World::all() {
        let line =
            "tty && test -c \"$(tty)\" && echo opened > \"$(tty)\" && script -qec tty /dev/null; echo over";
        let mut talk = world.open(Keyboard::Terminal, &["bash", "-c", line]).await;
        talk.hear(if world.rung == Mechanism::Namespaces { "/dev/console\r\n" } else { "/dev/pts/" }).await;
        if world.rung != Mechanism::Landlock {
            talk.hear("opened\r\n/dev/pts/").await;
        }
        talk.hear("over").await;
    }
}
