//! A panic of the session leaves the terminal as it was.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Command, Stdio},
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcgetattr, tcsetwinsize},
};
use windlass::{Agent, AgentBuilder, ApprovalPolicy, Network, SandboxMode, ThreadId, clean::Secrets};
use windlass_tui::{
    AgentSource, Display, ExternalEditor, InteractiveSession, KeptRule, MechanismProbe, NotificationSettings,
    OfferedModel, ProgramCommands, PromptHistory, SessionInfo, SessionSettings,
    render::{Theme, status::SessionStatus},
};

const MESSAGE: &str = "a fault in the session";

/// Panics as soon as a message is sent, on the thread that draws.
struct FaultyHistory;

impl PromptHistory for FaultyHistory {
    fn load(&self) -> Vec<String> {
        Vec::new()
    }

    fn append(&self, _text: &str) -> Result<(), String> {
        panic!("{MESSAGE}");
    }
}

impl ProgramCommands for FaultyHistory {
    fn run(&self, _arguments: &[String]) {}
}

impl AgentSource for FaultyHistory {
    fn servers(&self) -> String {
        String::new()
    }

    fn prompt_fetch(&self, _request: windlass_tui::PromptRequest) -> windlass_tui::PromptFetch {
        Box::new(|| Err("none".to_owned()))
    }

    fn agent(&self, _settings: &SessionSettings) -> Result<AgentBuilder, String> {
        Err("there is one agent".to_owned())
    }

    fn models(&self) -> Vec<OfferedModel> {
        Vec::new()
    }

    fn rules(&self) -> Result<Vec<KeptRule>, String> {
        Ok(Vec::new())
    }

    fn session_diff(&self, _thread: &ThreadId) -> Result<String, String> {
        Ok(String::new())
    }

    fn messages(&self, _thread: &ThreadId) -> Vec<String> {
        Vec::new()
    }

    fn branch(&self) -> Option<String> {
        None
    }

    fn mechanism_probe(&self) -> MechanismProbe {
        Box::new(|| None)
    }

    fn secrets(&self) -> Secrets {
        Secrets::default()
    }
}

fn end_process(signal: i32) -> ! {
    std::process::exit(signal)
}

/// Not a test by itself: the test below runs it in a terminal.
#[test]
#[ignore = "needs a terminal"]
fn session_with_a_fault() {
    let status = SessionStatus {
        model: "m".to_owned(),
        provider: None,
        directory: "/w".to_owned(),
        branch: None,
        sandbox: "read-only".to_owned(),
        mechanism: None,
        plan_mode: false,
        network: Network::None,
        approval: ApprovalPolicy::OnRequest,
        context_percent: None,
        tokens: 0,
        processes: 0,
    };
    let settings = SessionSettings {
        model: "m".to_owned(),
        provider: "scripted".to_owned(),
        approval: ApprovalPolicy::OnRequest,
        sandbox: SandboxMode::ReadOnly,
        plan_mode: false,
    };
    let theme = Theme::no_colour();
    let session = InteractiveSession {
        queue: std::sync::Arc::default(),
        agents: &FaultyHistory,
        info: SessionInfo { cwd: "/".into(), status, theme, settings, prompts: Vec::new(), vi_keys: false },
        display: Display::Fullscreen,
        is_plain: false,
        earlier: Box::new(Vec::new),
        notifications: NotificationSettings::new(false, Vec::new(), &|_| None),
        editor: ExternalEditor { command: None, directory: "/nowhere".into() },
        detects_background: false,
        end_process,
        prompt: None,
        note: None,
        history: &FaultyHistory,
        commands: &FaultyHistory,
    };
    let model = windlass::model::scripted(r#"{"turns": []}"#).unwrap();
    session.run(Agent::builder().model(model)).unwrap();
}

#[test]
fn a_panic_restores_the_terminal_before_it_is_reported() {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let before = format!("{:?}", tcgetattr(&slave).unwrap());
    let stream = || Stdio::from(slave.try_clone().unwrap());
    let mut child = Command::new("setsid")
        .arg("--ctty")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "session_with_a_fault", "--ignored", "--nocapture"])
        .stdin(stream())
        .stdout(stream())
        .stderr(stream())
        .spawn()
        .unwrap();
    let mut terminal = File::from(master);
    let (mut written, mut bytes) = (String::new(), [0; 4096]);
    let mut has_typed = false;
    while !written.contains(MESSAGE) {
        let count = terminal.read(&mut bytes).unwrap();
        let part = String::from_utf8_lossy(&bytes[..count]).into_owned();
        if part.contains("\x1b[6n") {
            terminal.write_all(b"\x1b[1;1R").unwrap();
        }
        written.push_str(&part);
        if !has_typed && written.contains("network") {
            assert_ne!(format!("{:?}", tcgetattr(&slave).unwrap()), before);
            terminal.write_all(b"hi\r").unwrap();
            has_typed = true;
        }
    }
    // What is written after the message must not fill the terminal.
    thread::spawn(move || while terminal.read(&mut bytes).is_ok_and(|count| count > 0) {});
    assert_eq!(child.wait().unwrap().code(), Some(101));
    assert_eq!(format!("{:?}", tcgetattr(&slave).unwrap()), before);
    let restored = written.find("\x1b[?1049l").expect("the alternate screen is left");
    assert!(restored < written.find(MESSAGE).unwrap(), "{written:?}");
    assert!(written.contains("\x1b[?2004l") && written.contains("\x1b[?25h"), "{written:?}");
}
