//! Properties that must hold for every command.

use proptest::{prelude::*, sample::select};
use windlass_contract::effects::CommandLine;
use windlass_policy::{Class, Judgement, Rules, judge};

fn line(script: &str) -> Judgement {
    words(&["bash", "-c", script])
}

fn words(argv: &[&str]) -> Judgement {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    judge(&CommandLine { argv, cwd: None }, &Rules::default())
}

/// Simple commands of every class.
const COMMANDS: &[&[&str]] = &[
    &["ls", "-la"],
    &["cat", "README.md"],
    &["git", "status"],
    &["grep", "-rn", "x", "src"],
    &["find", ".", "-name", "*.rs"],
    &["cat", ".env"],
    &["make", "test"],
    &["sort", "-o", "f", "f"],
    &["git", "push"],
    &["rm", "-rf", "build"],
    &["git", "reset", "--hard"],
    &["npm", "publish"],
    &["rm", "-rf", "/"],
    &["dd", "of=/dev/sda"],
    &["shutdown", "now"],
];

fn command() -> impl Strategy<Value = Vec<&'static str>> {
    select(COMMANDS.to_vec()).prop_map(<[_]>::to_vec)
}

fn quoted(words: &[&str]) -> String {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    CommandLine { argv, cwd: None }.display()
}

/// Text that looks like shell.
fn shell_like() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "ls",
        " ",
        "rm -rf /",
        "'",
        "\"",
        "$",
        "$(",
        ")",
        "`",
        "${",
        "}",
        "{",
        "(",
        ";",
        "&",
        "|",
        "<",
        ">",
        "<<E\n",
        "\n",
        "\\",
        "\\\n",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "[[",
        "]]",
        "~",
        "=",
        "a=1 ",
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case ",
        "esac",
        "f() ",
        "0",
        "\u{0}",
        "\r",
        "\u{202e}",
        "é",
        "日",
        "sudo ",
        "bash -c ",
        "git ",
        "-",
        "--",
        "/",
        ".",
        "((",
        "))",
        "<(",
        "&>",
        "2>&1",
        ">&-",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_judged(text in any::<String>()) {
        line(&text);
        words(&[&text]);
        words(&[&text, &text]);
    }

    #[test]
    fn text_that_looks_like_shell_is_judged(text in shell_like()) {
        let judged = line(&text);
        prop_assert!(judged.class != Class::Safe || judged.unclear.is_empty());
        prop_assert!(!judged.changes_nothing || judged.class == Class::Safe);
        prop_assert!(!judged.escape_sandbox);
        prop_assert!(judged.parts.iter().all(|part| part.class <= judged.class));
    }

    #[test]
    fn a_command_in_a_wrapper_is_never_safer(
        command in command(),
        wrapper in select(vec![
            &["sudo"][..], &["sudo", "-u", "x"], &["env"], &["env", "A=1"], &["timeout", "5"], &["time"], &["nice", "-n", "5"],
            &["nohup"], &["xargs"], &["xargs", "-n", "1"], &["command"], &["exec"], &["stdbuf", "-oL"], &["busybox"], &["setsid"],
            &["unknown-wrapper"], &["find", ".", "-exec"], &["bash", "-c"], &["sh", "-c"], &["su", "-c"], &["eval"], &["watch"],
        ]),
    ) {
        let shell = matches!(wrapper, ["bash" | "sh" | "su", "-c"]);
        let joined = quoted(&command);
        let wrapped = if shell { [wrapper, &[joined.as_str()]].concat() } else { [wrapper, &command[..]].concat() };
        let (inner, outer) = (words(&command).class, words(&wrapped).class);
        let known = wrapper != ["unknown-wrapper"];
        prop_assert!(outer >= inner || (!known && outer > Class::Safe), "{wrapped:?}: {outer:?} < {inner:?}");
        prop_assert!(line(&quoted(&wrapped)).class >= words(&wrapped).class, "{wrapped:?}");
    }

    #[test]
    fn adding_anything_never_makes_a_command_safer(
        command in command(),
        before in select(vec!["", "A=1 ", "LC_ALL=C ", "PATH=. ", "X=$(id) ", "! ", "(", "{ ", "ls; ", "true && ", "ls | ", "f() { "]),
        after in select(vec![
            "", " > f", " >> ~/.bashrc", " 2>/dev/null", " < f", " < .env", " $x", " \"$(id)\"", " `id`", " &", " | wc", "; ls", " || true",
            " <<< x", " <<E\nx\nE\n", " *", " # c", "\nls", " > /dev/sda", " 2>&1", " {a,b}",
        ]),
    ) {
        let plain = line(&quoted(&command)).class;
        let script = format!("{before}{}{after}", quoted(&command));
        prop_assert!(line(&script).class >= plain, "{script:?}");
    }

    #[test]
    fn two_commands_are_as_bad_as_the_worse(a in command(), b in command(), operator in select(vec![";", "&&", "||", "|", "\n", "&"])) {
        let worse = line(&quoted(&a)).class.max(line(&quoted(&b)).class);
        let script = format!("{} {operator} {}", quoted(&a), quoted(&b));
        prop_assert!(line(&script).class >= worse, "{script:?}");
    }

    #[test]
    fn what_changes_nothing_redirects_to_nothing(text in shell_like()) {
        let judged = line(&format!("ls {text}"));
        if judged.changes_nothing {
            prop_assert!(judged.files.iter().all(|file| file.access == windlass_policy::FileAccess::Read));
        }
    }
}
