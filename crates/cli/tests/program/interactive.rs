//! Interactive sessions in a terminal, as a person sees them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Emulator, User};

const SIZE: (u16, u16) = (30, 90);

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// Longer than the time in which a new question takes no keys.
const READING_TIME: Duration = Duration::from_millis(600);

fn session(user: &User, turns: &Value, options: &[&str]) -> Emulator {
    let script = user.script(turns);
    Emulator::start(&user.program(&[&["chat", "--script", &script], options].concat()), SIZE)
}

fn shell(command: &str) -> Value {
    json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]})
}

#[test]
fn a_message_is_answered_and_leaving_restores_the_terminal() {
    let user = User::new();
    let mut terminal = session(&user, &json!([{"text": "Good morning."}]), &[]);
    terminal.until("Ask, or / for commands");
    assert!(!terminal.is_cooked());
    terminal.type_in("hello there\r");
    let screen = terminal.until("Good morning.");
    assert!(screen.contains("› hello there"), "{screen}");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.is_cooked() && terminal.is_plain(), "{}", terminal.screen());
    let screen = terminal.screen();
    let session = user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(screen.contains(&format!("windlass resume {session}")), "{screen}");
    assert!(!screen.contains("windlass undo"), "nothing was changed: {screen}");
    assert!(screen.contains("Good morning.") && !screen.contains("network off"), "{screen}");
    let history = user.home().join("prompt-history");
    assert_eq!(fs::read_to_string(&history).unwrap(), "hello there\n/quit\n");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_command_is_approved_and_another_denied_with_a_note() {
    let user = User::new();
    let turns = json!([shell("echo one > first"), shell("echo two > second"), {"text": "All done."}]);
    let options = ["-s", "danger-full-access", "-a", "untrusted"];
    let mut terminal = session(&user, &turns, &options);
    terminal.until("NO SANDBOX");
    // The last key is typed before the question appears.
    terminal.type_in("go on\ry");
    let screen = terminal.until("Allow it?");
    assert!(screen.contains("echo one > first") && !user.work().join("first").exists(), "{screen}");
    thread::sleep(READING_TIME);
    assert!(!user.work().join("first").exists(), "{}", terminal.screen());
    terminal.type_in("y");
    let screen = terminal.until("echo two > second");
    assert_eq!(user.read("first"), "one\n", "{screen}");
    terminal.until("Allow it?");
    thread::sleep(READING_TIME);
    terminal.type_in("nnot now\r");
    terminal.until("All done.");
    assert!(!user.work().join("second").exists());
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04\x15\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let records = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(records.contains("not now"), "{records}");
}

#[test]
fn a_person_sees_a_patch_and_the_dangerous_part_of_a_command() {
    let user = User::new();
    let lines: String = (0..200).map(|number| format!("+line {number}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: notes\n{lines}*** End Patch\n");
    let edit = json!({"calls": [{"name": "apply_patch", "arguments": {"input": patch}}]});
    let turns = json!([edit, shell("echo a > out && rm -rf build"), {"text": "All done."}]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "untrusted"]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("go on\r");
    let screen = terminal.until("Allow it? (Esc: no)");
    for shown in ["the change:", "more lines, printed above", "│ +line 199", "would create: notes"] {
        assert!(screen.contains(shown), "no `{shown}`: {screen}");
    }
    assert!(!screen.contains("would read") && !screen.contains("+line 100"), "{screen}");
    assert!(terminal.scrollback().iter().any(|line| line.contains("│ +line 100")), "{screen}");
    assert_ne!(terminal.colour_of("+line 199"), terminal.colour_of("would create"), "{screen}");
    terminal.type_in("y");
    terminal.until("echo a > out && rm -rf build");
    let screen = terminal.until("Allow it? (Esc: no)");
    assert_eq!(user.read("notes").lines().count(), 200);
    for shown in ["wants to run:", "would write: out", "would delete: build", "look at: rm -rf build"] {
        assert!(screen.contains(shown), "no `{shown}`: {screen}");
    }
    terminal.type_in("n\r");
    terminal.until("All done.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_huge_command_keeps_its_ends_and_the_choices_in_view() {
    let user = User::new();
    let lines: String = (0..4000).map(|number| format!("echo line number {number}\n")).collect();
    let turns = json!([shell(&format!("touch first\n{lines}touch last")), {"text": "All done."}]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "untrusted"]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("go on\r");
    let screen = terminal.until("Allow it? (Esc: no)");
    for shown in
        ["│ touch first", "more lines, printed above", "│ touch last", "  y  yes, once", "  q  no, and stop"]
    {
        assert!(screen.contains(shown), "no `{shown}`: {screen}");
    }
    terminal.type_in("n");
    terminal.until("Why not?");
    terminal.type_in("too long\r");
    terminal.until("All done.");
    assert!(!user.work().join("first").exists());
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn the_input_has_a_search_attachments_images_and_vi_keys() {
    let user = User::new();
    let answers = ["One.", "Two.", "Three."].map(|text| json!({"text": text}));
    let options = ["-c", "tui.vi_keys=true"];
    let mut terminal = session(&user, &json!(answers), &options);
    let idle = |terminal: &mut Emulator| terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.until("Ask, or / for commands");
    terminal.type_in("\x1b[200~");
    terminal.type_in(&"pasted line\n".repeat(30));
    terminal.type_in("\x1b[201~");
    terminal.until("[pasted 30 lines]");
    terminal.type_in(" please read\r");
    let screen = terminal.until("One.");
    assert!(screen.contains("  … 23 more lines"), "{screen}");
    idle(&mut terminal);
    fs::write(user.work().join("shot.png"), PNG).unwrap();
    terminal.type_in("look at @shot.png ");
    terminal.until("[image shot.png, 1 KB]");
    terminal.type_in("\r");
    terminal.until("Two.");
    idle(&mut terminal);
    fs::write(user.work().join("fake.png"), "no image").unwrap();
    terminal.type_in("and @fake.png \r");
    terminal.until("is not a PNG, JPEG, GIF or WebP file; the message was not");
    idle(&mut terminal);
    terminal.type_in("\x12look");
    terminal.until("search: look");
    terminal.type_in("\r");
    terminal.until_screen("taken", |screen| !screen.contains("search:"));
    terminal.type_in("\x1b");
    terminal.until("N look at @shot.png");
    terminal.type_in("0cwstare\r");
    terminal.until("Three.");
    idle(&mut terminal);
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    let records = fs::read_to_string(&user.sessions()[0]).unwrap();
    assert!(records.contains(&"pasted line\\n".repeat(30)), "{records}");
    assert_eq!(records.matches("data:image/png;base64,").count(), 2, "{records}");
    assert!(records.contains("stare at @shot.png") && !records.contains("fake.png"), "{records}");
}

#[test]
fn code_in_a_list_and_wide_characters_keep_their_places() {
    let user = User::new();
    let markdown =
        "1. Run this:\n   ```bash\n   make\n   ```\n2. Look.\n\n| a | b |\n|---|---|\n| 文字 | 👍 c |\n";
    let mut terminal = session(&user, &json!([{"text": markdown}]), &[]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("show\r");
    let screen = terminal.until("👍 c");
    assert!(screen.contains("1. Run this:\n   [bash]\n     make\n2. Look.\n"), "{screen}");
    assert!(screen.contains("a    │ b\n─────┼──"), "{screen}");
    assert!(screen.contains("文字 │ 👍 c\n"), "{screen}");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_turn_is_cancelled_and_the_session_goes_on() {
    let user = User::new();
    let turns = json!([shell("echo begun; sleep 60"), {"text": "Here again."}]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "never"]);
    terminal.until("NO SANDBOX");
    terminal.type_in("wait\r");
    terminal.until("└ begun");
    terminal.resize(20, 60);
    terminal.until_screen("smaller", |screen| screen.lines().count() == 20 && screen.contains("working"));
    terminal.type_in("\x03");
    terminal.until("⊘ run");
    terminal.until("Ask, or / for commands");
    thread::sleep(Duration::from_secs(2));
    terminal.type_in("and now\r");
    terminal.until("Here again.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x03");
    terminal.until("Ctrl-C again leaves");
    terminal.type_in("\x03");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert!(terminal.is_cooked() && terminal.is_plain());
}

#[test]
fn a_signal_restores_the_terminal_and_the_session_can_be_resumed() {
    let user = User::new();
    let script = user.script(&json!([{"text": "First answer."}, {"text": "Second answer."}]));
    let start = |arguments: &[&str]| {
        Emulator::start(&user.program(&[arguments, &["--script", &script]].concat()), SIZE)
    };
    let mut terminal = start(&["chat", "--fullscreen", "say something first"]);
    terminal.until("First answer.");
    assert!(!terminal.is_plain() && !terminal.is_cooked());
    terminal.signal("TERM");
    assert_eq!(terminal.end(), Some(130), "{}", terminal.screen());
    assert!(terminal.is_cooked() && terminal.is_plain(), "{}", terminal.screen());
    let mut terminal = start(&["resume"]);
    terminal.until("say something first");
    terminal.type_in("\r");
    terminal.until("Ask, or / for commands");
    terminal.type_in("and more\r");
    terminal.until("Second answer.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn a_command_of_the_program_and_one_of_the_person_run_in_the_session() {
    let user = User::new();
    let mut terminal = session(&user, &json!([]), &["-s", "danger-full-access", "-a", "never"]);
    terminal.until("NO SANDBOX");
    terminal.type_in("/sessions\r");
    terminal.until("DIRECTORY");
    terminal.until("Ask, or / for commands");
    terminal.type_in("!echo mine > mine; echo written\r");
    terminal.until("│ written");
    assert_eq!(user.read("mine"), "mine\n");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_terminal_that_hangs_does_not_hold_up_a_command() {
    let user = User::new();
    let command = "for i in $(seq 60); do seq $i 1000; sleep 0.05; done; touch finished";
    let turns = json!([shell(command), {"text": "It is done."}]);
    let mut terminal = session(&user, &turns, &["-s", "danger-full-access", "-a", "never"]);
    terminal.until("NO SANDBOX");
    terminal.while_hanging(|| {
        terminal.type_in("count\r");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !user.work().join("finished").exists() {
            assert!(Instant::now() < deadline, "the command waits for the terminal");
            thread::sleep(Duration::from_millis(50));
        }
    });
    terminal.until("It is done.");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn wide_characters_keep_their_place_in_the_scrollback() {
    let user = User::new();
    let turns = json!([{"text": "修好了：两个测试都通过 🎉 x"}]);
    let mut terminal = session(&user, &turns, &[]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("请修好\r");
    let screen = terminal.until("修好了：两个测试都通过 🎉 x");
    assert!(screen.contains("› 请修好\n"), "{screen}");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn finished_text_is_in_the_scrollback_once_and_in_order() {
    let user = User::new();
    let list = |from: u32| (from..from + 120).map(|number| format!("- entry {number}\n")).collect::<String>();
    let turns = json!([
        {"text": list(1), "calls": [{"name": "shell_command", "arguments": {"command": "seq 1 50"}}]},
        {"text": list(121), "calls": [{"name": "shell_command", "arguments": {"command": "echo asked > x"}}]},
        {"text": list(241)},
    ]);
    let options = ["-s", "danger-full-access", "-a", "untrusted"];
    let mut terminal = session(&user, &turns, &options);
    terminal.until("Ask, or / for commands");
    terminal.type_in("list them\r");
    terminal.until("Allow it?");
    thread::sleep(READING_TIME);
    terminal.type_in("y");
    terminal.until("entry 360");
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    let lines = terminal.scrollback();
    let numbers: Vec<u32> =
        lines.iter().filter_map(|line| line.split_once("entry ")?.1.parse().ok()).collect();
    assert_eq!(numbers, (1..=360).collect::<Vec<_>>(), "{lines:#?}");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn the_output_of_a_command_has_its_colours_unless_it_has_a_secret() {
    let user = User::new();
    let mut terminal = session(&user, &json!([]), &["-s", "danger-full-access", "-a", "never"]);
    terminal.until("Ask, or / for commands");
    terminal.type_in("!printf '\\033[31mscarlet\\033[0m \\033[2Jplain\\n'\r");
    terminal.until("│ scarlet plain");
    assert_eq!(terminal.colour_of("scarlet plain"), Some(vt100::Color::Idx(1)), "{}", terminal.screen());
    terminal.until_screen("idle", |screen| !screen.contains("working"));
    terminal.type_in("!printf 'ghp_\\033[31m16C7e42F292c6912E7710c838347Ae178B4a crimson\\033[0m\\n'\r");
    let screen = terminal.until_screen("the end of the second call", |screen| {
        screen.contains("#2") && !screen.contains("working")
    });
    let output = screen.lines().rfind(|line| line.contains("│ ")).unwrap();
    assert!(output.contains("crimson") && !output.contains("16C7e42F"), "{screen}");
    terminal.type_in("\x04");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
}

#[test]
fn without_a_terminal_there_is_no_session() {
    let user = User::new();
    let ended = user.run(&["chat"]);
    ended.assert_code(2);
    assert!(ended.stderr.contains("needs a terminal; `windlass exec`"), "{ended:?}");
    user.run(&[]).assert_code(2);
    // A single unknown word is taken for a command with a typing error, even at a terminal.
    let mut terminal = Emulator::start(&user.program(&["sesions"]), SIZE);
    assert_eq!(terminal.end(), Some(2), "{}", terminal.screen());
}
