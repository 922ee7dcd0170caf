//! The rules of a sandbox as a profile for macOS's Seatbelt: pure text, so that it is tested
//! everywhere.

use std::path::{Path, PathBuf};

use windlass_contract::effects::Network;

use crate::ProtectedPaths;

/// Full path of the program, so that `PATH` cannot replace it.
#[cfg(target_os = "macos")]
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// Rules that every program needs. Comments give the reasons.
const BASE: &str = "\
(version 1)
(deny default)
; starting and ending one's own processes
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
; what libraries ask the system about itself
(allow sysctl-read)
(allow iokit-open (iokit-registry-entry-class \"RootDomainUserClient\"))
(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\"))
(allow mach-lookup (global-name \"com.apple.system.logger\"))
(allow mach-lookup (global-name \"com.apple.PowerManagement.control\"))
; locks between one's own processes
(allow ipc-posix-sem)
(allow ipc-posix-shm)
; terminals
(allow pseudo-tty)
(allow file-ioctl (regex #\"^/dev/tty.*\"))
; files: everything may be read but what is named below
(allow file-read*)
(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (regex #\"^/dev/(tty|ptmx|fd/).*\"))
";

/// A profile and its paths. Paths are parameters, never text of the profile, so that no name can
/// become a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SeatbeltProfile {
    text: String,
    parameters: Vec<(String, PathBuf)>,
}

impl SeatbeltProfile {
    /// Makes the profile for the rules of a sandbox.
    pub(crate) fn new(
        roots: &[PathBuf],
        temporary: &Path,
        protected: &ProtectedPaths,
        hidden: &[PathBuf],
        network: Network,
    ) -> Self {
        let mut profile = Self { text: BASE.to_owned(), parameters: Vec::new() };
        let trees = roots.iter().map(PathBuf::as_path);
        profile.rule("allow file-write*", "WRITABLE", "subpath", trees.chain([temporary]));
        let kept = [&protected.read_only, &protected.unmounted, &protected.git_configs, &protected.absent];
        let kept = kept.into_iter().flatten().map(PathBuf::as_path);
        profile.rule("deny file-write*", "PROTECTED", "subpath", kept);
        let links = protected.links.iter().map(|(path, _)| path.as_path());
        profile.rule("deny file-write*", "LINK", "literal", links);
        let pinned = protected.pinned.iter().map(PathBuf::as_path);
        profile.rule("deny file-write-unlink", "PINNED", "literal", pinned);
        profile.rule("deny file-read* file-write*", "HIDDEN", "subpath", hidden.iter().map(PathBuf::as_path));
        profile.text.push_str(match network {
            Network::None => "; no network, but connected pairs of sockets\n(deny network*)\n",
            Network::Any => "(allow network*)\n(allow system-socket)\n",
        });
        profile
    }

    fn rule<'a>(&mut self, action: &str, name: &str, kind: &str, paths: impl Iterator<Item = &'a Path>) {
        let mut filters = String::new();
        for (number, path) in paths.enumerate() {
            let name = format!("{name}_{number}");
            filters.push_str(&format!(" ({kind} (param \"{name}\"))"));
            self.parameters.push((name, path.to_owned()));
        }
        if !filters.is_empty() {
            self.text.push_str(&format!("({action}{filters})\n"));
        }
    }

    /// Returns the arguments that precede the command.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let parameters = self.parameters.iter().map(|(name, path)| format!("-D{name}={}", path.display()));
        ["-p".to_owned(), self.text.clone()].into_iter().chain(parameters).chain(["--".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(network: Network) -> SeatbeltProfile {
        let protected = ProtectedPaths {
            git_configs: ["/w/.git/config".into()].into(),
            absent: ["/w/.envrc".into()].into(),
            pinned: ["/w/.git".into()].into(),
            links: vec![("/w/.codex".into(), "x".into())],
            ..ProtectedPaths::default()
        };
        let hidden = [PathBuf::from("/h/.ssh")];
        SeatbeltProfile::new(&["/w".into()], Path::new("/t"), &protected, &hidden, network)
    }

    #[test]
    fn what_may_be_written_comes_before_what_may_not_because_the_last_rule_counts() {
        let rules = profile(Network::None).text.strip_prefix(BASE).unwrap().to_owned();
        assert_eq!(
            rules,
            "(allow file-write* (subpath (param \"WRITABLE_0\")) (subpath (param \"WRITABLE_1\")))\n\
             (deny file-write* (subpath (param \"PROTECTED_0\")) (subpath (param \"PROTECTED_1\")))\n\
             (deny file-write* (literal (param \"LINK_0\")))\n\
             (deny file-write-unlink (literal (param \"PINNED_0\")))\n\
             (deny file-read* file-write* (subpath (param \"HIDDEN_0\")))\n\
             ; no network, but connected pairs of sockets\n(deny network*)\n"
        );
    }

    #[test]
    fn paths_are_parameters_and_cannot_become_rules() {
        let evil = PathBuf::from("/w\")(allow default)");
        let protected = ProtectedPaths::default();
        let profile = SeatbeltProfile::new(
            std::slice::from_ref(&evil),
            Path::new("/t"),
            &protected,
            &[],
            Network::None,
        );
        assert!(!profile.text.contains("allow default"));
        assert!(profile.arguments().contains(&format!("-DWRITABLE_0={}", evil.display())));
    }

    #[test]
    fn a_granted_network_is_open_and_brackets_match() {
        let text = profile(Network::Any).text;
        assert!(text.ends_with("(allow network*)\n(allow system-socket)\n"));
        let count = |bracket| {
            text.lines()
                .filter(|line| !line.starts_with(';'))
                .flat_map(str::chars)
                .filter(|c| *c == bracket)
                .count()
        };
        // The one pattern has a pair of its own.
        assert_eq!(count('('), count(')'));
    }
}
