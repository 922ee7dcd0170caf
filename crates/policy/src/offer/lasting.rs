//! Commands that an answer may let out of the sandbox permanently: nothing in a workspace can
//! influence them.

/// Returns true if these words are a command of the table, with no options except those listed
/// there.
pub(super) fn is_listed(words: &[String]) -> bool {
    let lines = include_str!("lasting.txt").lines();
    lines.filter(|line| !line.starts_with('#')).any(|line| is_line_of(line, words))
}

fn is_line_of(line: &str, words: &[String]) -> bool {
    let Some((command, options)) = line.split_once('|') else { return false };
    let command: Vec<_> = command.split_whitespace().collect();
    let Some((begin, rest)) = words.split_at_checked(command.len()) else { return false };
    let is_option = |word: &String| options.split_whitespace().any(|option| option == word);
    begin == command && rest.iter().all(|word| is_option(word) || is_plain_name(word))
}

/// Returns true for the name of a container or a unit, or a number: not an option, a path or an
/// address.
fn is_plain_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listed_line(line: &str) -> bool {
        is_listed(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn only_what_the_table_has_is_listed() {
        for line in
            ["df -h", "docker ps -a", "docker logs web-1", "systemctl status nginx.service", "gh pr view 12"]
        {
            assert!(is_listed_line(line), "{line}");
        }
        for line in [
            "docker",
            "docker run x",
            "docker --config d ps",
            "docker -H tcp://x ps",
            "docker ps --format={{.ID}}",
            "docker compose ps",
            "docker logs ./x",
            "gh pr view https://example.org/x",
            "gh pr view --web",
            "git fetch",
            "git push",
            "make",
            "python3 x.py",
            "npm test",
            "kubectl get pods",
            "ps -o args",
            "/usr/bin/df",
        ] {
            assert!(!is_listed_line(line), "{line}");
        }
    }
}
