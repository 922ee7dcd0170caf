//! Patches as calls, and inside commands.

use windlass_contract::{Event, erase, event::EditKind};
use windlass_fakes::run_parsed;

use super::*;
use crate::{fakes::ToolHarness, shell::ShellProgram};

const PATCH: &str = "*** Begin Patch\n*** Add File: made\n+hello\n*** Update File: a\n@@\n-one\n+1\n*** Update File: \
                     from\n*** Move to: to\n*** Delete File: gone\n*** End Patch";

fn desk() -> ToolHarness {
    ToolHarness::with_drawer(&[("a", "one\ntwo\n"), ("from", "x\n"), ("gone", "y\n")])
}

async fn patch(desk: &ToolHarness, text: &str) -> Result<Vec<Content>, String> {
    let ready = apply_patch(PatchForm::Freeform).prepare(&Input::Text(text.to_owned()));
    let end = match ready {
        Ok(ready) => run_parsed(&ready, &desk.cx).await,
        Err(error) => Err(error),
    };
    end.map(|output| output.content).map_err(|error| error.message)
}

#[test]
fn a_patch_may_be_as_large_as_the_input_of_a_call() {
    assert_eq!(windlass_patch::MAX_PATCH_BYTES, windlass_contract::call::MAX_INPUT_BYTES);
}

#[tokio::test]
async fn a_patch_changes_files_and_says_which() {
    let desk = desk();
    let said = patch(&desk, PATCH).await.unwrap();
    let expected = "Success. Updated the following files:\nA made\nM a\nM to\nD gone\n";
    assert_eq!(said, [Content::Text(expected.to_owned())]);
    let files = ["made", "a", "from", "to", "gone"].map(|path| desk.file(path));
    assert_eq!(
        files,
        [Some("hello\n"), Some("1\ntwo\n"), None, Some("x\n"), None].map(|text| text.map(str::to_owned))
    );
    let [Event::EditStarted { files, .. }, Event::EditEnded { success: true, changed, .. }] =
        &desk.events()[..]
    else {
        panic!("{:?}", desk.events())
    };
    let kinds: Vec<_> = files.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [EditKind::Add, EditKind::Update, EditKind::Update, EditKind::Delete]);
    assert_eq!((files[2].move_path.as_deref(), changed.len()), (Some(Path::new("to")), 4));
}

#[tokio::test]
async fn what_fails_changes_nothing_and_is_told_in_known_words() {
    let cases = [
        (
            "*** Update File: no\n@@\n-x\n+y",
            "Failed to read file to update no: No such file or directory (os error 2)",
        ),
        ("*** Delete File: no", "Failed to delete file no"),
        ("*** Update File: a\n@@\n-three\n+3", "Failed to find expected lines in a:\nthree"),
        ("*** Update File: a\n@@ nowhere\n-one\n+1", "Failed to find context 'nowhere' in a"),
    ];
    for (body, expected) in cases {
        let desk = desk();
        let text = format!("*** Begin Patch\n*** Delete File: gone\n{body}\n*** End Patch");
        let error = patch(&desk, &text).await.unwrap_err();
        assert!(error.starts_with(&format!("apply_patch verification failed: {expected}")), "{error}");
        assert_eq!(desk.file("gone").as_deref(), Some("y\n"));
        assert!(desk.events().is_empty());
    }
    let error = patch(&desk(), "nonsense").await.unwrap_err();
    assert_eq!(
        error,
        "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'"
    );
}

#[tokio::test]
async fn binaries_are_not_touched_but_may_go() {
    let desk = ToolHarness::with_drawer(&[("b", "\0"), ("c", "\0")]);
    for body in ["*** Update File: b\n@@\n-x\n+y", "*** Add File: b\n+x"] {
        let error = patch(&desk, &format!("*** Begin Patch\n{body}\n*** End Patch")).await.unwrap_err();
        assert!(error.contains("it is a binary file"), "{error}");
    }
    let text = "*** Begin Patch\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n*** End Patch";
    patch(&desk, text).await.unwrap();
    assert_eq!((desk.file("b"), desk.file("d").as_deref()), (None, Some("\0")));
}

#[tokio::test]
async fn a_match_that_was_not_to_the_letter_is_told() {
    let desk = ToolHarness::with_drawer(&[("a", "\tone  \nx\none\n")]);
    let said =
        patch(&desk, "*** Begin Patch\n*** Update File: a\n@@\n-one \n+1\n x\n*** End Patch").await.unwrap();
    let [_, Content::Text(note)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(note, "Note: a, line 1: matched ignoring indentation");
}

#[test]
fn every_path_of_a_patch_is_written_the_one_it_moves_to_as_well() {
    let ready = apply_patch(PatchForm::Function).prepare(&Input::Text(PATCH.to_owned())).unwrap();
    assert_eq!(ready.effects().writes, ["made", "a", "from", "to", "gone"].map(PathBuf::from));
    assert_eq!(ready.effects().command, None);
}

#[test]
fn a_function_call_is_understood_and_so_is_bare_text_in_one() {
    let json = serde_json::json!({"input": PATCH}).to_string();
    for input in [Input::Json(json), Input::Json(PATCH.to_owned()), Input::Text(PATCH.to_owned())] {
        assert!(apply_patch(PatchForm::Freeform).prepare(&input).is_ok(), "{input:?}");
    }
    assert!(apply_patch(PatchForm::Freeform).prepare(&Input::Json("{}".to_owned())).is_err());
}

#[tokio::test]
async fn a_patch_inside_a_command_is_applied_and_no_command_runs() {
    let desk = ToolHarness::with_drawer(&[("sub/a", "one\n")]);
    let script = "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** End Patch\nEOF";
    let input = serde_json::json!({"command": ["bash", "-lc", script]}).to_string();
    let ready = erase(ShellProgram).prepare(&Input::Json(input)).unwrap();
    assert_eq!((ready.effects().writes, ready.effects().command), (vec![PathBuf::from("sub/a")], None));
    let output = run_parsed(&ready, &desk.cx).await.unwrap();
    assert!(Content::join(&output.content).starts_with("Success. Updated the following files:\nM a\n"));
    assert_eq!((desk.file("sub/a").as_deref(), desk.asked().len()), (Some("1\n"), 0));
}

#[tokio::test]
async fn a_patch_inside_a_command_that_does_not_fit_is_a_command_that_failed() {
    use windlass_contract::{host::Exit, outcome::Facts};

    let desk = desk();
    let input = serde_json::json!({"command": ["apply_patch", "nonsense"]}).to_string();
    let output = desk.call(erase(ShellProgram), &input).await.unwrap();
    assert!(matches!(&output.facts, Facts::Command(report) if report.exit == Exit::Code(1)));
    assert!(Content::join(&output.content).contains("The first line of the patch must be"));
    let bare = serde_json::json!({"command": [PATCH]}).to_string();
    let error = desk.call(erase(ShellProgram), &bare).await.unwrap_err();
    assert!(error.message.starts_with("patch detected without explicit call to apply_patch."), "{error}");
    assert!(desk.asked().is_empty());
}

#[tokio::test]
async fn files_that_changed_are_patched_where_the_patch_is_sure_and_else_told_together() {
    let desk = desk();
    let text = |body: &str| format!("*** Begin Patch\n{body}\n*** End Patch");
    patch(&desk, &text("*** Update File: a\n@@\n-one\n+1\n*** Update File: gone\n@@\n-y\n+z")).await.unwrap();
    desk.overwrite("a", "1\ntwo\nnew\n");
    desk.overwrite("gone", "theirs\n");
    let blind = text("*** Add File: a\n+mine\n*** Delete File: gone");
    let error = patch(&desk, &blind).await.unwrap_err();
    assert!(error.contains("a has changed since") && error.contains("gone has changed since"), "{error}");
    assert_eq!(desk.file("gone").as_deref(), Some("theirs\n"));
    desk.overwrite("a", "1\ntwo\nnewer\n");
    let said = patch(&desk, &text("*** Update File: a\n@@\n-two\n+2")).await.unwrap();
    let Content::Text(note) = &said[1] else { panic!("{said:?}") };
    assert!(note.starts_with("Note: a has changed since") && note.contains("+newer"), "{note}");
    assert_eq!(desk.file("a").as_deref(), Some("1\n2\nnewer\n"));
}

#[tokio::test]
async fn a_file_that_was_there_already_is_replaced_and_that_is_told() {
    let desk = desk();
    let said = patch(&desk, "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch").await.unwrap();
    let note = "Note: a already existed and is replaced; `windlass undo` restores it";
    assert_eq!(said[1], Content::Text(note.to_owned()));
}
