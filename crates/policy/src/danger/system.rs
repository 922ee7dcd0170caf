//! Commands that affect the machine or its processes, and code hidden in a text.

use super::{CommandDanger, SuspectCommand};
use crate::shell::{CommandSeparator, ShellScript, UnclearKind};

/// Finds the danger of a command that affects the machine.
pub(super) fn find(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    match call.program {
        "kill" => kill(call),
        "sysctl" => {
            let sets =
                call.has_any(&["-w", "--write", "-p"]) || call.operands().any(|text| text.contains('='));
            sets.then(|| CommandDanger::ask("`sysctl` would change the running kernel"))
        }
        "psql" | "mysql" | "mariadb" | "sqlite3" => database(call),
        "python" | "python2" | "python3" | "perl" | "ruby" | "node" | "php" | "lua" => code(call),
        _ => None,
    }
}

/// Process 1 is init, and -1 stands for every process.
fn kill(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let mut texts = call.texts().peekable();
    match texts.peek() {
        Some(&("-s" | "-n")) => drop((texts.next(), texts.next())),
        Some(first) if first.starts_with('-') && *first != "--" => drop(texts.next()),
        _ => {}
    }
    let all = texts.any(|text| matches!(text, "1" | "-1"));
    all.then(|| CommandDanger::never("`kill` would end everything on the machine"))
}

fn database(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    const LOSSES: &[&str] = &["drop table", "drop database", "drop schema", "truncate ", "delete from"];
    let loses = call.texts().any(|text| {
        let text = text.to_lowercase();
        LOSSES.iter().any(|loss| text.contains(loss))
    });
    loses.then(|| {
        CommandDanger::ask(format!("`{}` would delete data", call.program)).instead("select it first")
    })
}

/// Finds destructive code on the command line by a few typical words.
fn code(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let has = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    call.texts().find_map(|text| {
        let text = text.to_lowercase();
        if text.contains("socket")
            && has(&text, &["dup2", "pty.spawn", "/bin/sh", "/bin/bash", "exec", "popen", "subprocess"])
        {
            return Some(CommandDanger::never("this opens a shell for someone else over the network"));
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
            return Some(CommandDanger::never("this starts processes without end"));
        }
        has(&text, &["rm -rf", "rm -fr", "rmtree", "rimraf", "rmsync", "rm_rf"])
            .then(|| CommandDanger::ask("this code deletes whole directories"))
    })
}

/// `f() { f | f & }`.
pub(super) fn fork_bomb(script: &ShellScript, at: usize) -> Option<CommandDanger> {
    let found = |what| script.unclear.iter().any(|unclear| unclear.what == what);
    let simple = script.commands.get(at)?;
    let before = script.commands.get(at.checked_sub(1)?)?;
    let calls_itself = simple.joined == CommandSeparator::Piped && simple.program() == before.program();
    (calls_itself && found(UnclearKind::Function) && found(UnclearKind::Background))
        .then(|| CommandDanger::never("this starts processes without end"))
}
