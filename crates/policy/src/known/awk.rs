//! `awk`: a language that can run programs, read and write any file, and loop forever. It needs
//! certain words or signs for that. They are searched in the raw text of the program, including its
//! strings, so that no parser has to agree with awk about where a string ends.

use super::grammar::SortedArguments;

/// Words that run, read or load something else, or that may loop forever. `@` calls by name and
/// loads, `|` runs a program.
const REACHES_OUT: &[&str] = &[
    "system", "getline", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "ARGV", "ARGC", "func", "while", "@",
    "\\\n",
];

/// Returns an error that says why an `awk` command is not harmless.
pub(super) fn check(arguments: &SortedArguments<'_>) -> Result<(), String> {
    let program = arguments.operands.first().ok_or("it has no program")?;
    if program.glob {
        return Err("its program is not known".to_owned());
    }
    // Some implementations of awk open a network connection for this name.
    if arguments.operands.iter().any(|word| word.text.starts_with("/inet")) {
        return Err("it would read from the network".to_owned());
    }
    let text = program.text.as_str();
    if let Some(word) = REACHES_OUT.iter().find(|word| text.contains(**word)) {
        return Err(format!("`{word}` in its program may do more than print"));
    }
    if has_pipe(text) || writes(text) {
        return Err("its program may run a program or write a file".to_owned());
    }
    if loops(text) {
        return Err("its program may never end".to_owned());
    }
    Ok(())
}

/// Returns true if there is a `|` that is not half of `||`.
fn has_pipe(program: &str) -> bool {
    program.replace("||", "").contains('|') || program.contains("|||")
}

/// Returns true if there is a `>` where statements can be. Before the first brace there are only
/// conditions.
fn writes(program: &str) -> bool {
    program.split_once('{').is_some_and(|(_, statements)| statements.contains('>'))
}

/// Returns true if there is any loop but `for (name in name)`.
fn loops(program: &str) -> bool {
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let over_an_array = |rest: &str| {
        let head = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let names = head.and_then(|(head, _)| head.split_once(" in "));
        names.is_some_and(|(key, array)| is_name(key.trim()) && is_name(array.trim()))
    };
    !program.split("for").skip(1).all(over_an_array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::ShellWord;

    fn is_harmless(program: &str) -> bool {
        let word = ShellWord::literal(program);
        check(&SortedArguments { operands: vec![&word], ..SortedArguments::default() }).is_ok()
    }

    #[test]
    fn what_prints_is_harmless_and_what_reaches_out_is_not() {
        for program in [
            "{print $1}",
            "NR>=10 && NR<=20",
            "NR>1 {print $3}",
            "/a/ || /b/ {print}",
            "{c[$1]++} END {for (k in c) print c[k], k}",
            "{printf \"%s\\n\", $2}",
        ] {
            assert!(is_harmless(program), "{program}");
        }
        for program in [
            "BEGIN{system(\"id\")}",
            "BEGIN{1system(\"id\")}",
            "{print > \"f\"}",
            "{print >> \"f\"}",
            "{print | \"sh\"}",
            "{print |& \"sh\"}",
            "{print ||| \"sh\"}",
            "\"id\" | getline",
            "BEGIN{while((getline l < \"f\")>0) print l}",
            "BEGIN{for(;;);}",
            "BEGIN{for(i=0;;) x[i]}",
            "BEGIN{print ENVIRON[\"KEY\"]}",
            "BEGIN{ARGV[1]=\"/x\"; ARGC=2}",
            "@load \"filefuncs\"",
            "BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}",
            "NR>1{print > \"f\"}",
            "BEGIN{sys\\\ntem(\"id\")}",
        ] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}
