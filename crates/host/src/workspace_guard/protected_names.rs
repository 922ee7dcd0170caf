//! Names that other programs execute or trust, each with who does.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// Protected in every directory that may be written and in those below it.
#[rustfmt::skip]
const ANYWHERE: &[(&str, &str)] = &[
    (".windlass", "our own settings for this project"),
    (".codex", "another agent's settings, with commands"),
    (".claude", "another agent's settings, with commands"),
    (".gemini", "another agent's settings, with commands"),
    (".qwen", "another agent's settings, with commands"),
    (".kiro", "another agent's settings, with commands"),
    (".roo", "another agent's settings, with commands"),
    (".kilocode", "another agent's settings, with commands"),
    (".cline", "another agent's settings, with commands"),
    (".clinerules", "another agent's settings, with commands"),
    (".continue", "another agent's settings, with commands"),
    (".opencode", "another agent's settings and plugins"),
    ("opencode.json", "another agent's settings, with commands"),
    ("opencode.jsonc", "another agent's settings, with commands"),
    (".crush.json", "another agent's settings, with commands"),
    ("crush.json", "another agent's settings, with commands"),
    (".crush", "another agent's settings, with commands"),
    (".goose", "another agent's settings, with commands"),
    (".goosehints", "another agent's instructions"),
    (".aider.conf.yml", "another agent's settings, with commands"),
    (".amazonq", "another agent's settings, with commands"),
    (".augment", "another agent's settings, with commands"),
    (".junie", "another agent's settings, with commands"),
    (".trae", "another agent's settings, with commands"),
    (".agents", "settings several agents read"),
    (".mcp.json", "servers that agents start"),
    (".cursor", "an editor's settings, with commands"),
    (".windsurf", "an editor's settings, with commands"),
    (".vscode", "tasks an editor runs when the folder is opened"),
    (".idea", "tasks an editor runs"),
    (".fleet", "tasks an editor runs"),
    (".zed", "tasks and language servers an editor runs"),
    (".nvim.lua", "an editor runs it in this directory"),
    (".nvimrc", "an editor runs it in this directory"),
    (".exrc", "an editor runs it in this directory"),
    (".dir-locals.el", "an editor evaluates it in this directory"),
    (".devcontainer", "commands run on the host when a container is made"),
    (".devcontainer.json", "commands run on the host when a container is made"),
    (".amp", "another agent's settings, with commands"),
    (".factory", "another agent's settings, with commands"),
    (".copilot", "another agent's settings, with commands"),
    (".grok", "another agent's settings, with commands"),
    (".iflow", "another agent's settings, with commands"),
    (".codebuddy", "another agent's settings, with commands"),
    (".vibe", "another agent's settings, with commands"),
    (".pi", "another agent's settings, with commands"),
    (".openhands", "another agent's settings, with commands"),
    (".rovodev", "another agent's settings, with commands"),
    (".forge.yaml", "another agent's settings, with commands"),
    (".continuerc.json", "another agent's settings, with commands"),
    (".roomodes", "another agent's settings, with commands"),
    (".helix", "an editor's settings, with commands"),
    (".theia", "tasks an editor runs"),
    (".nova", "tasks an editor runs"),
    (".run", "tasks an editor runs"),
    (".dir-locals-2.el", "an editor evaluates it in this directory"),
    (".lvimrc", "an editor runs it in this directory"),
    (".local.vimrc", "an editor runs it in this directory"),
    (".shadowenv.d", "a shell evaluates it on entering the directory"),
    (".autoenv", "a shell evaluates it on entering the directory"),
    (".autoenv.zsh", "a shell evaluates it on entering the directory"),
    (".envrc", "direnv runs it on entering the directory"),
    (".mise", "a shell evaluates it on entering the directory"),
    (".mise.toml", "a shell evaluates it on entering the directory"),
    (".mise.local.toml", "a shell evaluates it on entering the directory"),
    ("mise.toml", "a shell evaluates it on entering the directory"),
    ("mise.local.toml", "a shell evaluates it on entering the directory"),
    (".config/mise.toml", "a shell evaluates it on entering the directory"),
    (".config/mise/config.toml", "a shell evaluates it on entering the directory"),
    ("mise/config.toml", "a shell evaluates it on entering the directory"),
    (".rvmrc", "a shell evaluates it on entering the directory"),
    (".husky", "git runs it through hooks that are there"),
    (".lefthook", "git runs it through hooks that are there"),
    (".lefthook.yml", "git runs commands it names, through hooks that are there"),
    ("lefthook.yaml", "git runs commands it names, through hooks that are there"),
    ("lefthook.toml", "git runs commands it names, through hooks that are there"),
    ("lefthook.json", "git runs commands it names, through hooks that are there"),
    (".lefthook.yaml", "git runs commands it names, through hooks that are there"),
    (".lefthook.toml", "git runs commands it names, through hooks that are there"),
    (".lefthook.json", "git runs commands it names, through hooks that are there"),
    (".lefthook-local.yml", "git runs commands it names, through hooks that are there"),
    ("lefthook.yml", "git runs commands it names, through hooks that are there"),
    ("lefthook-local.yml", "git runs commands it names, through hooks that are there"),
    (".pre-commit-config.yaml", "git runs commands it names, through hooks that are there"),
    (".pre-commit-config.yml", "git runs commands it names, through hooks that are there"),
    ("prek.toml", "git runs commands it names, through hooks that are there"),
    ("captainhook.json", "git runs commands it names, through hooks that are there"),
    ("grumphp.yml", "git runs commands it names, through hooks that are there"),
    (".overcommit.yml", "git runs commands it names, through hooks that are there"),
    (".vimrc", "an editor runs it in this directory"),
    (".gvimrc", "an editor runs it in this directory"),
    (".Rprofile", "R runs it when it starts in this directory"),
    (".ghci", "ghci runs it when it starts in this directory"),
    (".ocamlinit", "OCaml runs it when it starts in this directory"),
    (".irbrc", "Ruby shells run it when they start in this directory"),
    (".pryrc", "Ruby shells run it when they start in this directory"),
    (".pdbrc", "Python's debugger runs it when it starts in this directory"),
    (".iex.exs", "Elixir's shell runs it when it starts in this directory"),
    (".byebugrc", "Ruby's debugger runs it when it starts in this directory"),
    (".Renviron", "R reads variables from it when it starts in this directory"),
    (".eca", "another agent's settings, with commands"),
    (".externalToolBuilders", "an editor runs programs it names"),
    (".sl/config", "Sapling runs programs it names"),
    (".hg/hgrc", "Mercurial runs programs it names"),
    (".hg/hgrc-not-shared", "Mercurial runs programs it names"),
    (".jj/repo/config.toml", "Jujutsu runs programs it names"),
    (".jj/workspace-config.toml", "Jujutsu runs programs it names"),
    (".pijul/config", "Pijul runs programs it names"),
    (".cargo/config.toml", "names programs that builds run"),
    (".cargo/config", "names programs that builds run"),
    (".yarnrc.yml", "names programs and plugins that Yarn runs"),
    (".pnpmfile.cjs", "pnpm runs it"),
    (".mvn", "options, extensions and a download that Maven runs"),
    (".opencode.json", "another agent's settings, with commands"),
    (".cursorrules", "another agent's instructions"),
    (".windsurfrules", "another agent's instructions"),
    (".huskyrc", "git runs it through hooks that are there"),
];

/// Protected like [`ANYWHERE`], by how the name ends, in lower case.
const ENDINGS: &[(&str, &str)] = &[(".code-workspace", "tasks an editor runs when the file is opened")];

/// Protected in a home directory, beside every name with a dot: shells put it into the search path
/// if it is there.
const SEARCHED_IN_HOME: &str = "bin";

/// Names with a dot in a home directory that commands may change. Git's directory has rules of its
/// own.
const OPEN_IN_HOME: [&str; 2] = [".git", ".cache"];

/// Protected below each writable root itself, in case it is a home directory.
#[rustfmt::skip]
const IN_ROOT: &[(&str, &str)] = &[
    (".bashrc", "shells run it when they start"),
    (".bash_profile", "shells run it when they start"),
    (".bash_login", "shells run it when they start"),
    (".bash_logout", "shells run it when they end"),
    (".bash_aliases", "shells run it when they start"),
    (".profile", "shells run it when they start"),
    (".zshrc", "shells run it when they start"),
    (".zshenv", "shells run it when they start"),
    (".zprofile", "shells run it when they start"),
    (".zlogin", "shells run it when they start"),
    (".zlogout", "shells run it when they end"),
    (".kshrc", "shells run it when they start"),
    (".cshrc", "shells run it when they start"),
    (".tcshrc", "shells run it when they start"),
    (".bash_completion", "shells run it when they start"),
    (".bashrc.d", "shells run it when they start"),
    (".login", "shells run it when they start"),
    (".mkshrc", "shells run it when they start"),
    (".zsh_aliases", "shells run it when they start"),
    (".oh-my-zsh", "shells run it when they start"),
    (".nvm", "shells run it when they start"),
    (".sdkman", "shells run it when they start"),
    (".asdf", "shells run it when they start"),
    (".fzf.bash", "shells run it when they start"),
    (".fzf.zsh", "shells run it when they start"),
    (".p10k.zsh", "shells run it when they start"),
    (".zimrc", "shells run it when they start"),
    (".zpreztorc", "shells run it when they start"),
    (".xonshrc", "shells run it when they start"),
    (".config/zsh", "shells run it when they start"),
    (".config/elvish", "shells run it when they start"),
    (".config/powershell", "shells run it when they start"),
    (".local/share/bash-completion", "shells run it when they start"),
    (".inputrc", "shells read key bindings, with commands"),
    (".xprofile", "desktops run it when they start"),
    (".xinitrc", "desktops run it when they start"),
    (".xsession", "desktops run it when they start"),
    (".xsessionrc", "desktops run it when they start"),
    (".pam_environment", "logins read variables from it"),
    (".config/fish", "shells run it when they start"),
    (".config/nushell", "shells run it when they start"),
    (".config/autostart", "desktops run it when they start"),
    (".config/environment.d", "the system reads variables from it at login"),
    (".config/systemd", "the system runs it when the user logs in"),
    (".config/plasma-workspace", "desktops run it when they start"),
    (".local/share/systemd", "the system runs it when the user logs in"),
    (".local/share/applications", "desktops run commands it names"),
    (".local/share/dbus-1", "the session bus starts programs it names"),
    (".local/bin", "programs in the search path"),
    (".cargo/bin", "programs in the search path"),
    (".cargo/env", "shells run it when they start"),
    (".vim", "an editor runs it when it starts"),
    (".config/nvim", "an editor runs it when it starts"),
    (".emacs", "an editor runs it when it starts"),
    (".emacs.d", "an editor runs it when it starts"),
    (".tmux.conf", "tmux runs commands it names"),
    (".screenrc", "screen runs commands it names"),
    (".gdbinit", "gdb runs it when it starts"),
    (".lldbinit", "lldb runs it when it starts"),
    (".gitconfig", "git runs programs it names"),
    (".config/git/config", "git runs programs it names"),
    (".ssh", "who may log in, and commands ssh runs"),
    (".forward", "mail is piped to programs it names"),
    (".config/tmux", "tmux runs commands it names"),
    (".config/i3", "desktops run commands it names"),
    (".config/sway", "desktops run commands it names"),
    (".config/hypr", "desktops run commands it names"),
    (".config/openbox", "desktops run commands it names"),
    (".config/labwc", "desktops run commands it names"),
    (".config/lxsession", "desktops run commands it names"),
    (".config/kitty", "a terminal runs commands it names"),
    (".config/alacritty", "a terminal runs commands it names"),
    (".config/wezterm", "a terminal runs commands it names"),
    (".config/ghostty", "a terminal runs commands it names"),
    (".config/gdb", "gdb runs it when it starts"),
    (".gdbearlyinit", "gdb runs it when it starts"),
    (".ipython", "Python shells run it when they start"),
    (".local/lib", "Python runs files of its packages when it starts"),
    (".gradle/init.gradle", "builds run it"),
    (".lessfilter", "less runs it"),
    (".mailcap", "mail programs run commands it names"),
    (".procmailrc", "mail is piped to programs it names"),
    (".config/containers", "containers run programs it names"),
    (".hgrc", "Mercurial runs programs it names"),
    (".config/hg", "Mercurial runs programs it names"),
    (".config/jj", "Jujutsu runs programs it names"),
    (".subversion", "Subversion runs programs it names"),
    (".config/emacs", "an editor runs it when it starts"),
    (".doom.d", "an editor runs it when it starts"),
    (".spacemacs", "an editor runs it when it starts"),
    (".local/share/nvim", "an editor runs it when it starts"),
    (".config/Code", "an editor's settings, with commands"),
    (".config/Cursor", "an editor's settings, with commands"),
    (".config/zed", "an editor's settings, with commands"),
    (".config/helix", "an editor's settings, with commands"),
    (".direnvrc", "direnv runs it"),
    (".config/direnv", "direnv runs it"),
    (".config/mise", "a shell evaluates it on entering a directory"),
    (".crontab", "cron runs it"),
];

/// Protected in every git directory, beside `config` and `config.worktree`, which are checked.
#[rustfmt::skip]
pub(super) const IN_GIT_DIRECTORY: &[(&str, &str)] = &[
    ("hooks", "programs git runs"),
    ("info/attributes", "sends files through filters"),
    ("commondir", "where git looks for settings and hooks"),
    ("remotes", "addresses of remotes, beside those in the settings"),
    ("branches", "addresses of remotes, beside those in the settings"),
];

/// Packages come with settings of their authors, and no editor is opened in one.
const PACKAGES: &str = "node_modules";

/// Returns true if an entry is protected in every directory. File systems may ignore case.
pub(crate) fn is_protected_entry(path: &Path) -> bool {
    /// The paths of [`ANYWHERE`] by their last name, in lower case.
    static BY_NAME: LazyLock<HashMap<OsString, Vec<&'static Path>>> = LazyLock::new(|| {
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for path in ANYWHERE.iter().map(|(path, _)| Path::new(*path)) {
            let name = path.file_name().unwrap_or_default().to_ascii_lowercase();
            by_name.entry(name).or_default().push(path);
        }
        by_name
    });
    let name = path.file_name().unwrap_or_default().to_ascii_lowercase();
    let listed = BY_NAME
        .get(&name)
        .is_some_and(|paths| paths.iter().any(|protected| ends_with_ignoring_case(path, protected)));
    let bytes = name.as_encoded_bytes();
    listed || ENDINGS.iter().any(|(ending, _)| bytes.ends_with(ending.as_bytes()))
}

/// Tells whether a name in a home directory is protected: every one with a dot, but for those that
/// commands need, and `bin`. Programs read settings there that name other programs, and no list of
/// them is complete.
pub(super) fn is_protected_in_home(name: &OsStr) -> bool {
    name == SEARCHED_IN_HOME
        || name.as_encoded_bytes().starts_with(b".")
            && !OPEN_IN_HOME.iter().any(|open| name.eq_ignore_ascii_case(open))
}

/// Returns the outermost ancestor of a path below a root (or the path itself) that is a protected
/// name.
pub(super) fn protected_ancestor(path: &Path) -> Option<PathBuf> {
    let mut above = PathBuf::new();
    for name in path {
        if name == PACKAGES {
            return None;
        }
        above.push(name);
        if is_protected_entry(&above) {
            return Some(above);
        }
    }
    None
}

/// Tells whether names below this directory do not count.
pub(super) fn is_package_directory(name: &OsStr) -> bool {
    name == PACKAGES
}

/// The paths that are protected below a root itself.
pub(super) fn in_root() -> impl Iterator<Item = &'static Path> {
    IN_ROOT.iter().map(|(path, _)| Path::new(*path))
}

/// Returns true if one path is another or lies below it, ignoring case.
pub(super) fn starts_with_ignoring_case(path: &Path, above: &Path) -> bool {
    let mut names = path.iter();
    above.iter().all(|name| names.next().is_some_and(|own| own.eq_ignore_ascii_case(name)))
}

fn ends_with_ignoring_case(path: &Path, ending: &Path) -> bool {
    let mut names = path.iter().rev();
    ending.iter().rev().all(|name| names.next().is_some_and(|own| own.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_once_with_a_reason_and_found_in_any_case() {
        let mut seen = std::collections::BTreeSet::new();
        for (name, reason) in ANYWHERE.iter().chain(IN_ROOT) {
            assert!(seen.insert(name) && !reason.is_empty() && !name.starts_with('/'), "{name}");
        }
        for (name, _) in ANYWHERE {
            assert!(is_protected_entry(&Path::new("a").join(name.to_uppercase())), "{name}");
        }
        for name in ["a/x.code-workspace", "a/X.CODE-WORKSPACE"] {
            assert!(is_protected_entry(Path::new(name)), "{name}");
        }
        for name in [".env", "a/.hg", "hgrc", "a/config.toml", "code-workspace", ".jj/repo"] {
            assert!(!is_protected_entry(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn in_a_home_directory_every_name_with_a_dot_counts_but_for_a_few() {
        for (name, expected) in [(".newrc", true), (".Cache", false), (".git", false), ("src", false)] {
            assert_eq!(is_protected_in_home(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn the_outermost_protected_name_counts_and_packages_may_have_their_own() {
        let of = |path: &str| protected_ancestor(Path::new(path));
        assert_eq!(of("a/.vscode/x/.idea/y"), Some("a/.vscode".into()));
        assert_eq!(of("a/node_modules/p/.vscode/x"), None);
        assert_eq!(of("a/b"), None);
    }
}
