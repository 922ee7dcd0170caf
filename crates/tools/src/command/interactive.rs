//! Recognizes programs that wait for a person by their names: editors, pagers and programs that
//! ask.

/// Purpose of an interactive program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InteractiveKind {
    Editor,
    Pager,
    Debugger,
    Prompt,
}

/// Names of interactive programs as the kernel keeps them (`TASK_COMM_LEN`: 15 bytes). Programs
/// that run another one after an answer, such as `sudo` and `ssh`, are not listed: that one may
/// simply take long.
const PROGRAMS: [(InteractiveKind, &[&str]); 4] = [
    (
        InteractiveKind::Editor,
        &[
            "vi",
            "vim",
            "vim.basic",
            "vim.tiny",
            "vim.nox",
            "vim.gtk3",
            "view",
            "vimdiff",
            "nvim",
            "nano",
            "pico",
            "emacs",
            "emacs-nox",
            "emacs-gtk",
            "emacsclient",
            "ed",
            "ex",
            "joe",
            "jed",
            "mcedit",
            "micro",
            "hx",
            "helix",
            "kak",
        ],
    ),
    (InteractiveKind::Pager, &["less", "more", "most", "man", "pg"]),
    (InteractiveKind::Debugger, &["gdb", "lldb", "pdb"]),
    (
        InteractiveKind::Prompt,
        &[
            "ssh-askpass",
            "x11-ssh-askpass",
            "gnome-ssh-askpa",
            "ksshaskpass",
            "pinentry",
            "pinentry-curses",
            "pinentry-gnome3",
            "pinentry-gtk-2",
            "pinentry-qt",
            "pinentry-tty",
            "whiptail",
            "dialog",
            "zenity",
            "passwd",
            "fzf",
        ],
    ),
];

/// An interactive program that runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InteractiveProgram {
    name: String,
    kind: InteractiveKind,
}

impl InteractiveProgram {
    /// Finds one among the names of programs, the one started last if there are several.
    pub(crate) fn find(names: &[String]) -> Option<Self> {
        let kind = |name: &str| {
            PROGRAMS.iter().find(|(_, programs)| programs.contains(&name)).map(|(kind, _)| *kind)
        };
        names.iter().rev().find_map(|name| Some(Self { name: name.clone(), kind: kind(name)? }))
    }

    /// Returns a description of the program and how to avoid it.
    pub(crate) fn advice(&self) -> String {
        let (what, advice) = match self.kind {
            InteractiveKind::Editor => (
                "an editor",
                "give the text in the call (`git commit -m`, `git merge --no-edit`), set `GIT_EDITOR=true` to take a \
                 text as it is, and change files with a tool",
            ),
            InteractiveKind::Pager => ("a pager", "set `PAGER=cat` (`git --no-pager`), or pipe into `cat`"),
            InteractiveKind::Debugger => {
                ("a debugger", "give its commands in the call (`gdb -batch -ex run -ex bt`)")
            }
            InteractiveKind::Prompt => {
                ("a program that asks", "give it its answer by an option, a file or a variable")
            }
        };
        format!("`{}`, {what}: {advice}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interactive_program_started_last_is_found_with_what_to_do() {
        let find = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            InteractiveProgram::find(&names).map(|program| program.advice())
        };
        let commit = find(&["bash", "git", "vi"]).unwrap();
        assert!(commit.starts_with("`vi`, an editor: ") && commit.contains("GIT_EDITOR=true"), "{commit}");
        let manual = find(&["man", "less"]).unwrap();
        assert!(manual.starts_with("`less`, a pager: ") && manual.contains("PAGER=cat"), "{manual}");
        for plain in [&["bash", "sleep"][..], &["sudo", "make"], &["viewer"], &[]] {
            assert_eq!(find(plain), None, "{plain:?}");
        }
    }

    #[test]
    fn no_name_is_longer_than_the_kernel_keeps() {
        for name in PROGRAMS.iter().flat_map(|(_, names)| *names) {
            assert!(name.len() <= 15, "{name}");
        }
    }
}
