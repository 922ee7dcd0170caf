//! Tests of the table of models.

use super::*;

fn entries(toml: &str) -> BTreeMap<String, ModelEntry> {
    parse(toml).unwrap()
}

/// The traits of a model in one line.
fn line(model: &str) -> String {
    let of = Family::of(model);
    format!(
        "{model}: {:?} {:?} {:?} {:?}{}{}{}{} {}k {}",
        of.shell,
        of.edits,
        of.files,
        of.budget,
        if of.parallel_calls { " parallel" } else { "" },
        if of.shows_images { " images" } else { "" },
        if of.reasoning { " reasoning" } else { "" },
        if of.search == SearchForm::Wire { " search" } else { "" },
        of.context_window.get() / 1000,
        of.vocabulary.map_or("-", Vocabulary::name),
    )
}

#[test]
fn the_table_has_every_family() {
    let models = [
        "o3",
        "o3-pro",
        "o4-mini",
        "codex-mini-latest",
        "gpt-3.5-turbo",
        "gpt-4.1",
        "gpt-4o-mini",
        "gpt-4o-audio",
        "gpt-oss-20b",
        "gpt-5",
        "gpt-5-pro",
        "gpt-5-codex",
        "gpt-5.1",
        "gpt-5.1-codex-max",
        "gpt-5.2-codex",
        "gpt-5.2-pro",
        "gpt-5.4",
        "gpt-5.6-sol",
        "exp-codex-1",
        "exp-x",
        "claude-3-haiku-1",
        "claude-3-7-sonnet-1",
        "claude-sonnet-4-5",
        "claude-opus-5",
        "qwen3:8b",
        "rules",
    ];
    insta::assert_snapshot!(models.map(line).join("\n"), @r"
        o3: Shell Patch Callable Bytes(10000) images reasoning 200k o200k
        o3-pro: Shell Patch Callable Bytes(10000) images reasoning 200k o200k
        o4-mini: Shell Patch Callable Bytes(10000) images reasoning 200k o200k
        codex-mini-latest: LocalShell Patch Callable Bytes(10000) images reasoning 200k o200k
        gpt-3.5-turbo: Shell Patch Callable Bytes(10000) 16k cl100k
        gpt-4.1: Shell Patch Callable Bytes(10000) images 1000k o200k
        gpt-4o-mini: Shell Patch Callable Bytes(10000) images 128k o200k
        gpt-4o-audio: Shell Patch Callable Bytes(10000) images 128k o200k
        gpt-oss-20b: Shell Patch Callable Bytes(10000) 128k o200k
        gpt-5: Shell Patch Callable Bytes(10000) images reasoning 272k o200k
        gpt-5-pro: Shell Patch Callable Bytes(10000) images reasoning 272k o200k
        gpt-5-codex: ShellCommand FreeformPatch Callable Tokens(10000) images reasoning 272k o200k
        gpt-5.1: ShellCommand FreeformPatch Callable Bytes(10000) parallel images reasoning 272k o200k
        gpt-5.1-codex-max: ShellCommand FreeformPatch Callable Tokens(10000) images reasoning 272k o200k
        gpt-5.2-codex: ShellCommand FreeformPatch Callable Tokens(10000) parallel images reasoning 272k o200k
        gpt-5.2-pro: ShellCommand FreeformPatch Callable Bytes(10000) parallel images reasoning 272k o200k
        gpt-5.4: UnifiedExec FreeformPatch Callable Tokens(10000) parallel images reasoning search 272k o200k
        gpt-5.6-sol: UnifiedExec FreeformPatch Callable Tokens(10000) parallel images reasoning search 272k o200k
        exp-codex-1: ShellCommand FreeformPatch Callable Tokens(10000) parallel images reasoning 272k o200k
        exp-x: UnifiedExec FreeformPatch Callable Bytes(10000) parallel images reasoning 272k o200k
        claude-3-haiku-1: ShellCommand Strings Offered Bytes(10000) parallel images 200k -
        claude-3-7-sonnet-1: ShellCommand Strings Offered Bytes(10000) parallel images reasoning 200k -
        claude-sonnet-4-5: ShellCommand Strings Offered Bytes(10000) parallel images reasoning 200k -
        claude-opus-5: ShellCommand Strings Offered Bytes(10000) parallel images reasoning 200k -
        qwen3:8b: ShellCommand Strings Offered Bytes(10000) parallel images 32k -
        rules: ShellCommand Strings Offered Bytes(2000000) 200k -
    ");
}

#[test]
fn the_file_is_read_whole_and_every_entry_is_reached() {
    let all = parse(include_str!("../../data/models.toml")).unwrap();
    assert!(all.len() > 20 && ModelTable::builtin().builtin.len() == all.len());
    for (name, entry) in all {
        // No longer name begins like this.
        let family = Family::of(&name.replace('*', "-zz"));
        let mut again = family;
        entry.apply(&mut again);
        assert_eq!(again, family, "{name}");
        assert!(entry != ModelEntry::default() && entry.prices.is_none(), "{name}");
    }
}

#[test]
fn entries_of_the_user_win_and_the_longest_name_most() {
    let table = ModelTable::default().with(entries(
        "[models.\"gpt-5*\"]\ncontext_window = 1\nimages = false\n\
         [models.\"gpt-5.2-codex\"]\ncontext_window = 2\n\
         [models.\"Qwen/qwen3*\"]\ntokenizer = \"cl100k\"\ncompact_at = 0\n\
         [models.mine]\nprices = {input = 1.0, output = 2.0}\n",
    ));
    let window = |model: &str| table.family(model).context_window.get();
    assert_eq!(
        [window("gpt-5.2-codex"), window("openai/gpt-5.2"), window("gpt-4o"), window("other")],
        [2, 1, 128_000, 32_000]
    );
    let codex = table.family("gpt-5.2-codex");
    assert!(!codex.shows_images && codex.edits == EditTools::FreeformPatch && codex.prices.is_none());
    let qwen = table.family("qwen/Qwen3-8B");
    assert_eq!((qwen.vocabulary, qwen.compact_at), (Some(Vocabulary::Cl100k), CompactAt::Off));
    assert_eq!(table.family("qwen3-8b").vocabulary, None, "a name with a vendor stands for that one");
    assert!(table.family("mine").prices.is_some() && table.family("mine2").prices.is_none());
}

#[test]
fn a_window_is_known_if_an_entry_has_it() {
    let table = ModelTable::default().with(entries("[models.\"a*\"]\ncontext_window = 5\n[models.b]\n"));
    let known = ["gpt-5", "claude-x", "abc", "b", "llama3"].map(|model| table.knows_window(model));
    assert_eq!(known, [true, true, true, false, false]);
}

#[test]
fn a_share_of_the_window_beyond_95_percent_is_an_error() {
    let read = |percent: u8| parse(&format!("[models.a]\ncompact_at = {percent}"));
    assert!(read(95).is_ok() && read(96).unwrap_err().to_string().contains("not from 0 to 95"));
}
