//! Compares judgements with real shells: scripts that are judged clear are run, and their programs
//! record the words they get.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use windlass_contract::effects::CommandLine;
use windlass_policy::{FileAccess, FileUse, Judgement, Rules, judge};

/// A shell in an empty directory, with programs that only record their words.
struct Shell {
    path: PathBuf,
    /// Commands that run before a script, and are not judged.
    prelude: &'static str,
    root: tempfile::TempDir,
}

impl Shell {
    /// Returns `None`, and prints a note, if the machine has no such shell.
    fn find(name: &str) -> Option<Self> {
        let path = ["/bin", "/usr/bin"].iter().map(|directory| Path::new(directory).join(name));
        let Some(path) = path.into_iter().find(|path| path.exists()) else {
            println!("skipped: there is no {name}");
            return None;
        };
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        for program in PROGRAMS {
            let file = root.path().join("bin").join(program);
            // One write each, so that the programs of a pipe do not mix theirs.
            fs::write(&file, "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" END >> \"$OUT\"\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Some(Self { path, prelude: "", root })
    }

    /// Runs a script and returns every program with its words, and the files that exist afterwards.
    fn run(&self, script: &str) -> Ran {
        let (out, work) = (self.root.path().join("out"), self.root.path().join("work"));
        fs::write(&out, "").unwrap();
        // Names that a script may read.
        fs::create_dir(&work).unwrap();
        for name in INPUTS {
            fs::write(work.join(name), "").unwrap();
        }
        let status = Command::new(&self.path)
            // Without wildcards: they stay as they are, and we show them so.
            .args(["-f", "-c", &format!("{}{script}", self.prelude)])
            .current_dir(&work)
            .env_clear()
            .env("PATH", self.root.path().join("bin"))
            .env("OUT", &out)
            // So that `~` comes out as it went in.
            .env("HOME", "~")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let text = fs::read_to_string(&out).unwrap();
        let words: Vec<_> = text.split_terminator('\0').map(str::to_owned).collect();
        let commands =
            words.split(|word| word == "END").map(<[String]>::to_vec).filter(|words| !words.is_empty());
        let names =
            fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let ran = Ran {
            commands: sorted(commands.collect()),
            files: sorted(names.filter(|name| !INPUTS.contains(&name.as_str())).collect()),
            understood: status.code() != Some(2),
        };
        fs::remove_dir_all(&work).unwrap();
        ran
    }
}

const PROGRAMS: [&str; 4] = ["p", "q", "pq", "["];
const INPUTS: [&str; 2] = ["in", "i 2"];

/// The recorded result of a shell.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    commands: Vec<Vec<String>>,
    files: Vec<String>,
    understood: bool,
}

fn sorted<T: Ord>(mut things: Vec<T>) -> Vec<T> {
    things.sort();
    things
}

fn judged(shell: &str, script: &str) -> Judgement {
    let argv = [shell, "-c", script].map(str::to_owned).to_vec();
    judge(&CommandLine { argv, cwd: None }, &Rules::default())
}

/// Returns the result that a judgement predicts; none if it is not certain, or if a command would
/// fail and end the script.
fn expected(shell: &Shell, script: &str, judgement: &Judgement) -> Option<Ran> {
    // `[` is a builtin of the shell, unless the prelude disables it.
    let own = |name: &str| name == "[" && shell.prelude.is_empty();
    let exists =
        |argv: &Vec<String>| argv.first().is_none_or(|name| PROGRAMS.contains(&name.as_str()) && !own(name));
    let missing = |file: &FileUse| match file.access {
        FileAccess::Read => !INPUTS.contains(&file.path.as_str()),
        FileAccess::Write | FileAccess::Append => file.path.contains('/') || file.path.is_empty(),
    };
    let fails = judgement.parts.iter().any(|part| !exists(&part.argv)) || judgement.files.iter().any(missing);
    let skips = script.contains("||") || (script.contains("! ") && script.contains("&&"));
    if !judgement.unclear.is_empty() || fails || skips {
        return None;
    }
    let commands = judgement.parts.iter().map(|part| part.argv.clone()).filter(|argv| !argv.is_empty());
    let written = judgement.files.iter().filter(|file| file.access != FileAccess::Read);
    let mut files = sorted(written.map(|file| file.path.clone()).collect());
    files.dedup();
    Some(Ran { commands: sorted(commands.collect()), files, understood: true })
}

/// A piece of a word.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(vec!["a", "b1", "-x", "--long=v", "é", "日本", "5", "2", "x.y", "a,b", "%", "+", "@", ":", "/", "_"]),
        3 => select(vec!["'c d'", "''", "\"e f\"", "\"\"", "'$x'", "'`'", "\"\\$\"", "\"\\`\"", "\"\\\\\"", "\"\\\"\"", "\"\\n\""]),
        3 => select(vec!["\\ ", "\\$", "\\\\", "\\'", "\\\"", "\\;", "\\&", "\\|", "\\<", "\\#", "\\*", "\\{", "\\~", "\\a"]),
        3 => select(vec!["{a,b}", "{1..3}", "{}", "{x}", "{,y}", "{a,{b,c}}", "@{1}", "{a,'b c'}", "{a,b}{c,d}", "{", "}", "{a"]),
        2 => select(vec!["*", "?", "[z]", "z*", "**", "[", "]", "[!z]"]),
        2 => select(vec!["~", "~/z", "=", "=z", "a=b", "^", "!", "#", "~1", "a=~", ":~"]),
        1 => select(vec!["a$", "\"^b$\"", "\"$/ $\"", "'c'$", "$$"]),
        1 => select(vec!["$", "$x", "`", "$(p)", "${x}", "$'a'", "(", ")", "<", ">", "&", ";", "|", "\"a", "'a", "\\\n", "\t"]),
    ]
    .prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat())
}

fn program() -> impl Strategy<Value = String> {
    select(vec!["p", "q", "pq", "'p'", "\\q", "p\"\"", "p'q'", "\"q\""]).prop_map(str::to_owned)
}

fn redirect() -> impl Strategy<Value = String> {
    select(vec![
        ">/dev/null",
        "2>&1",
        "> o1",
        ">o2",
        ">> o3",
        "2>o4",
        "&>o5",
        "&>>o6",
        ">|o7",
        "< in",
        "<'i 2'",
        "2>&-",
        "1>'o 8'",
        ">&o9",
        "<in",
        "3>o10",
        "<<<t",
        ">o\"1\"1",
        "2 >o12",
    ])
    .prop_map(str::to_owned)
}

fn argument() -> impl Strategy<Value = String> {
    prop_oneof![6 => word(), 1 => redirect()]
}

fn command() -> impl Strategy<Value = String> {
    let before = prop_oneof![
        10 => Just(""), 1 => Just("A=1 "), 1 => Just("B='c d' "), 1 => Just("! "), 1 => Just(">o13 "), 1 => Just("\t"),
    ];
    let blank = select(vec![" ", "  ", "\t", " \\\n ", "\\\n"]);
    (before, program(), prop::collection::vec((blank, argument()), 0..5)).prop_map(
        |(before, program, arguments)| {
            let arguments: String =
                arguments.into_iter().map(|(blank, argument)| format!("{blank}{argument}")).collect();
            format!("{before}{program}{arguments}")
        },
    )
}

fn script() -> impl Strategy<Value = String> {
    let operator = select(vec![
        "; ",
        ";",
        " && ",
        "&&",
        " | ",
        "|",
        "\n",
        " |& ",
        " && \n",
        " # c; p\n",
        "\n# c\n",
        ";;",
        " & ",
        "; ; ",
    ]);
    let end = select(vec!["", "", "", ";", "\n", " # end"]);
    (command(), prop::collection::vec((operator, command()), 0..3), end).prop_map(|(first, rest, end)| {
        let rest: String =
            rest.into_iter().map(|(operator, command)| format!("{operator}{command}")).collect();
        format!("{first}{rest}{end}")
    })
}

/// `[ … ]`, which the grammar reads as an expression and a shell as words.
fn test_script() -> impl Strategy<Value = String> {
    let operator = select(vec![
        "-f", "-d", "-z", "-n", "=", "==", "!=", "-eq", "-a", "-o", "!", "-nt", "\\(", "\\)", "=~", "<",
    ]);
    let part = prop_oneof![
        4 => operator.prop_map(str::to_owned),
        4 => word(),
        4 => redirect(),
        1 => select(vec!["[", "]", "p", "\n", ";", "&&", "|"]).prop_map(str::to_owned),
    ];
    let after = select(vec!["", " && p a", " || p b", "; q", " 2>/dev/null", " | pq x", "\n", "; "]);
    let one = (prop::collection::vec(part, 0..6), after)
        .prop_map(|(parts, after)| format!("[ {} ]{after}", parts.join(" ")));
    prop::collection::vec(one, 1..3).prop_map(|tests| tests.concat())
}

/// Compares many scripts, and counts the clear ones. They are always the same, so that no unrelated
/// change fails by chance. `PROPTEST_CASES` sets their number, and `SEED` selects others: a number,
/// as a failure prints it, or `random`. After a change of the parser, run many random ones.
fn compare(shell: &Shell, name: &str, scripts: &impl Strategy<Value = String>, cases: u32) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("PROPTEST_CASES").unwrap_or(cases.into());
    let random = std::env::var("SEED").is_ok_and(|seed| seed == "random");
    let seed = if random { RandomState::new().hash_one(name) } else { number("SEED").unwrap_or(1) };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let (mut clear, mut different) = (0, Vec::new());
    for _ in 0..cases {
        let script = scripts.new_tree(&mut runner).unwrap().current();
        if let Some(expected) = expected(shell, &script, &judged(name, &script)) {
            clear += 1;
            let ran = shell.run(&script);
            if ran != expected {
                different.push(format!("{script:?}\n  ran      {ran:?}\n  expected {expected:?}\n"));
            }
        }
    }
    assert!(
        different.is_empty(),
        "{name}, SEED={seed}: {} of {clear}\n{}",
        different.len(),
        different.concat()
    );
    // Without this, a parser that understands nothing would pass.
    assert!(clear * 8 > cases, "{name}: only {clear} of {cases} were clear");
}

#[test]
fn bash_runs_exactly_the_words_we_judge() {
    let Some(shell) = Shell::find("bash") else { return };
    compare(&shell, "bash", &script(), 3000);
}

#[test]
fn dash_runs_exactly_the_words_we_judge() {
    let Some(shell) = Shell::find("dash") else { return };
    compare(&shell, "dash", &script(), 1500);
}

#[test]
fn sh_runs_exactly_the_words_we_judge() {
    let Some(shell) = Shell::find("sh") else { return };
    compare(&shell, "sh", &script(), 500);
}

#[test]
fn a_test_in_brackets_is_a_program_with_words() {
    let Some(shell) = Shell::find("bash") else { return };
    let shell = Shell { prelude: "enable -n [\n", ..shell };
    compare(&shell, "bash", &test_script(), 1500);
}
