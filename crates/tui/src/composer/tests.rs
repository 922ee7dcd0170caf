//! Keys and pasted texts in the input.

use super::*;

fn composer(history: &[&str]) -> Composer {
    let history = history.iter().map(|&text| text.to_owned()).collect();
    Composer::new(history, FileIndex::new("/nowhere".into()))
}

fn press(composer: &mut Composer, key: Key) -> ComposerResult {
    composer.on_key(&Input { key, ..Input::default() })
}

fn write(composer: &mut Composer, text: &str) {
    for c in text.chars() {
        press(composer, Key::Char(c));
    }
}

#[test]
fn a_message_may_have_several_lines() {
    let mut composer = composer(&[]);
    write(&mut composer, "one");
    composer.on_key(&Input { key: Key::Enter, alt: true, ..Input::default() });
    write(&mut composer, "two");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("one\ntwo".into()));
    assert!(composer.is_empty());
}

#[test]
fn the_history_gives_back_the_draft_at_its_end() {
    let mut composer = composer(&["first", "second"]);
    write(&mut composer, "draft");
    press(&mut composer, Key::Up);
    assert_eq!(composer.text(), "second");
    press(&mut composer, Key::Up);
    press(&mut composer, Key::Up);
    assert_eq!(composer.text(), "first");
    press(&mut composer, Key::Down);
    press(&mut composer, Key::Down);
    assert_eq!(composer.text(), "draft");
}

#[test]
fn a_long_paste_is_a_mark_until_it_is_sent() {
    let mut composer = composer(&[]);
    let long = "line\n".repeat(50);
    composer.paste(&long);
    assert_eq!(composer.text(), "[pasted 50 lines]");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted(long));
}

#[test]
fn a_command_is_completed_and_then_sent() {
    let mut composer = composer(&[]);
    write(&mut composer, "/he");
    assert_eq!(lines(&composer).len(), 1);
    press(&mut composer, Key::Tab);
    assert_eq!(composer.text(), "/help ");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("/help ".into()));
    write(&mut composer, "/quit");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("/quit".into()));
}

fn lines(composer: &Composer) -> Vec<String> {
    composer.choices(60, &Theme::no_colour()).iter().map(ToString::to_string).collect()
}

fn control(composer: &mut Composer, c: char) {
    composer.on_key(&Input { key: Key::Char(c), ctrl: true, ..Input::default() });
}

fn alt(composer: &mut Composer, c: char) {
    composer.on_key(&Input { key: Key::Char(c), alt: true, ..Input::default() });
}

#[test]
fn a_long_paste_is_removed_with_one_key() {
    let mut composer = composer(&[]);
    write(&mut composer, "see ");
    composer.paste(&"line\n".repeat(50));
    press(&mut composer, Key::Backspace);
    assert_eq!(composer.text(), "see ");
    composer.paste(&"x".repeat(1001));
    control(&mut composer, 'a');
    write(&mut composer, "[");
    press(&mut composer, Key::Right);
    for _ in 0..3 {
        press(&mut composer, Key::Right);
    }
    press(&mut composer, Key::Delete);
    assert_eq!(composer.text(), "[see ");
}

#[test]
fn the_usual_keys_edit_the_line() {
    let mut composer = composer(&[]);
    write(&mut composer, "one two three");
    control(&mut composer, 'w');
    assert_eq!(composer.text(), "one two ");
    control(&mut composer, 'y');
    assert_eq!(composer.text(), "one two three");
    control(&mut composer, 'a');
    alt(&mut composer, 'd');
    assert_eq!(composer.text(), " two three");
    alt(&mut composer, 'f');
    control(&mut composer, 'k');
    assert_eq!(composer.text(), " ");
    control(&mut composer, 'y');
    control(&mut composer, 'e');
    alt(&mut composer, 'b');
    control(&mut composer, 'u');
    assert_eq!(composer.text(), "three");
    composer.on_key(&Input { key: Key::Right, ctrl: true, ..Input::default() });
    write(&mut composer, "!");
    composer.on_key(&Input { key: Key::Left, ctrl: true, ..Input::default() });
    write(&mut composer, "s");
    assert_eq!(composer.text(), "threes!");
}

#[test]
fn a_backslash_before_enter_and_other_keys_begin_a_line() {
    let mut composer = composer(&[]);
    write(&mut composer, "one\\");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Used);
    write(&mut composer, "two");
    control(&mut composer, 'j');
    write(&mut composer, "three");
    composer.on_key(&Input { key: Key::Enter, shift: true, ..Input::default() });
    let expected = ComposerResult::Submitted("one\ntwo\nthree\n".into());
    assert_eq!(press(&mut composer, Key::Enter), expected);
}

#[test]
fn control_r_searches_and_backing_out_gives_the_draft_back() {
    let mut composer = composer(&["run the tests", "say hello"]);
    write(&mut composer, "draft");
    control(&mut composer, 'r');
    write(&mut composer, "test");
    assert_eq!(composer.text(), "run the tests");
    assert_eq!(lines(&composer), ["  search: test  (Ctrl-R: earlier, Enter: take it, Esc: back)"]);
    assert!(composer.back_out());
    assert_eq!(composer.text(), "draft");
    assert!(!composer.back_out());
    control(&mut composer, 'r');
    write(&mut composer, "test");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Used);
    write(&mut composer, "!");
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("run the tests!".into()));
}

#[test]
fn vi_keys_have_a_mode_that_the_sign_shows() {
    let mut composer = composer(&["earlier"]).with_vi_keys(true);
    write(&mut composer, "jk");
    assert_eq!((composer.text().as_str(), composer.sign()), ("jk", "› "));
    assert!(composer.back_out() && !composer.back_out());
    assert_eq!(composer.sign(), "N ");
    write(&mut composer, "xk");
    assert_eq!(composer.text(), "earlier");
    write(&mut composer, "j0iX");
    assert_eq!((composer.text().as_str(), composer.sign()), ("Xj", "› "));
    assert_eq!(press(&mut composer, Key::Enter), ComposerResult::Submitted("Xj".into()));
    assert_eq!(composer.sign(), "› ");
}

#[test]
fn wide_characters_and_words_that_wrap_have_rows() {
    let mut composer = composer(&[]);
    composer.paste("文文文文文 文文");
    assert_eq!(composer.rows(11), 2);
    composer.set_text("one two-three-four");
    assert_eq!(composer.rows(16), 2);
    composer.set_text(&"x\n".repeat(100));
    assert_eq!(composer.rows(16), 8);
}

#[test]
fn files_that_become_known_between_a_key_and_the_next_tick_are_offered() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "").unwrap();
    let mut composer = Composer::new(Vec::new(), FileIndex::new(folder.path().to_owned()));
    composer.on_key(&Input { key: Key::Char('@'), ..Input::default() });
    assert!(composer.awaits_files());
    while !composer.files.is_ready() {
        std::thread::yield_now();
    }
    assert!(composer.awaits_files());
    composer.complete();
    let text = composer.choices(40, &Theme::no_colour())[0].to_string();
    assert_eq!((text.trim(), composer.awaits_files()), ("@src/main.rs", false));
}
