//! The machine, its processes, and code that hides in a text.

use super::{Call, Danger};
use crate::shell::{Joined, Script, What};

/// What a command would do to the machine.
pub(super) fn find(call: &Call<'_>) -> Option<Danger> {
    match call.program {
        "kill" => kill(call),
        "sysctl" => {
            let sets =
                call.has_any(&["-w", "--write", "-p"]) || call.operands().any(|text| text.contains('='));
            sets.then(|| Danger::ask("`sysctl` would change the running kernel"))
        }
        "psql" | "mysql" | "mariadb" | "sqlite3" => database(call),
        "python" | "python2" | "python3" | "perl" | "ruby" | "node" | "php" | "lua" => code(call),
        _ => None,
    }
}

/// Process 1 is the machine, process -1 everyone's.
fn kill(call: &Call<'_>) -> Option<Danger> {
    let mut texts = call.texts().peekable();
    match texts.peek() {
        Some(&("-s" | "-n")) => drop((texts.next(), texts.next())),
        Some(first) if first.starts_with('-') && *first != "--" => drop(texts.next()),
        _ => {}
    }
    let all = texts.any(|text| matches!(text, "1" | "-1"));
    all.then(|| Danger::never("`kill` would end everything on the machine"))
}

fn database(call: &Call<'_>) -> Option<Danger> {
    const LOSSES: &[&str] = &["drop table", "drop database", "drop schema", "truncate ", "delete from"];
    let loses = call.texts().any(|text| {
        let text = text.to_lowercase();
        LOSSES.iter().any(|loss| text.contains(loss))
    });
    loses.then(|| Danger::ask(format!("`{}` would delete data", call.program)).instead("select it first"))
}

/// Code on the command line, by the few words that give it away.
fn code(call: &Call<'_>) -> Option<Danger> {
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    call.texts().find_map(|text| {
        let text = text.to_lowercase();
        if text.contains("socket")
            && has(&text, &["dup2", "pty.spawn", "/bin/sh", "/bin/bash", "exec", "popen", "subprocess"])
        {
            return Some(Danger::never("this opens a shell for someone else over the network"));
        }
        if has(
            &text,
            &[
                "fork while fork",
                "while(1){fork",
                "while true: os.fork",
                "while 1: os.fork",
                "while true:os.fork",
            ],
        ) {
            return Some(Danger::never("this starts processes without end"));
        }
        has(&text, &["rm -rf", "rm -fr", "rmtree", "rimraf", "rmsync", "rm_rf"])
            .then(|| Danger::ask("this code deletes whole directories"))
    })
}

/// `f() { f | f & }`.
pub(super) fn fork_bomb(script: &Script, at: usize) -> Option<Danger> {
    let found = |what| script.unclear.iter().any(|unclear| unclear.what == what);
    let simple = script.commands.get(at)?;
    let before = script.commands.get(at.checked_sub(1)?)?;
    let calls_itself = simple.joined == Joined::Piped && simple.program() == before.program();
    (calls_itself && found(What::Function) && found(What::Background))
        .then(|| Danger::never("this starts processes without end"))
}
