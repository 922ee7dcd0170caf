//! Finds out by trying which confinement this machine can enforce.
#![expect(clippy::disallowed_methods, reason = "files of the kernel, which no command can write")]

use std::{fs, path::Path};

use windlass_contract::grant::Mechanism;

use crate::Mechanisms;

/// The confinement that this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The mechanism for commands; `None` if there is none, so that commands are refused.
    pub rung: Option<Mechanism>,
    /// The version of Landlock; 0 if there is none.
    pub landlock: u32,
    /// Reason why there is no better mechanism.
    pub missing: Option<Missing>,
    /// The effect of each layer on this machine, by name.
    pub layers: Vec<(&'static str, String)>,
    /// Protections that one might expect and that are missing.
    pub not_covered: Vec<String>,
}

/// A missing mechanism, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The reason.
    pub reason: String,
    /// A command that fixes it, if one is known.
    pub remedy: Option<String>,
}

/// Settings that switch user namespaces off, and the values that do.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
];

/// Marks of a container, whose own rules forbid namespaces.
const CONTAINERS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Options for a container in which commands can be confined best.
const CONTAINER_REMEDY: &str =
    "start the container with: --security-opt seccomp=unconfined --security-opt systempaths=unconfined";

impl Mechanisms {
    /// Starts an empty sandbox, tries to escape from it, and reports.
    pub fn diagnose(&self) -> Diagnosis {
        let landlock = self.landlock();
        let namespaces = self.try_namespaces();
        let rung = match &namespaces {
            Ok(()) => Some(Mechanism::Namespaces),
            #[cfg(target_os = "linux")]
            Err(_) if landlock >= crate::landlock_plan::NEEDED_VERSION => Some(Mechanism::Landlock),
            Err(_) if cfg!(target_os = "macos") => Some(Mechanism::Seatbelt),
            Err(_) => None,
        };
        let not_covered = match rung {
            #[cfg(target_os = "linux")]
            Some(Mechanism::Landlock) => crate::landlock_plan::not_covered(landlock),
            Some(_) => vec![
                "other names of a file that was linked into a root before: writing one writes all".to_owned(),
            ],
            None => vec!["everything: commands are refused unless the sandbox is switched off".to_owned()],
        };
        Diagnosis {
            rung,
            landlock,
            missing: namespaces.err().map(|reason| Missing { reason, remedy: remedy() }),
            layers: layers(rung, landlock),
            not_covered,
        }
    }
}

fn remedy() -> Option<String> {
    let off = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let switch = SWITCHES.iter().find(|(path, value, _)| off(path, value)).map(|(_, _, remedy)| *remedy);
    let contained = CONTAINERS.iter().any(|mark| Path::new(mark).exists()).then_some(CONTAINER_REMEDY);
    switch.or(contained).map(str::to_owned)
}

/// Describes the enforcement of limits on memory and processes.
#[cfg(target_os = "linux")]
fn limits() -> String {
    match crate::cgroup::available() {
        Ok(()) => "memory and processes by a cgroup of each command; the rest for each process".to_owned(),
        Err(reason) => format!(
            "for each process, or counted by PID 1 every 5 to 250 ms: no cgroup of our own ({reason}); remedy: {}",
            crate::cgroup::REMEDY
        ),
    }
}

fn layers(rung: Option<Mechanism>, landlock: u32) -> Vec<(&'static str, String)> {
    let mut layers = Vec::new();
    if rung == Some(Mechanism::Namespaces) {
        layers.push((
            "mounts",
            "all read-only but the roots; private /tmp, /dev, /proc; secrets hidden, protected names fixed"
                .to_owned(),
        ));
        layers.push((
            "processes",
            "own process, IPC and host-name namespaces; all die with the command".to_owned(),
        ));
        layers.push(("network", "one of the session's own with a loopback, unless granted".to_owned()));
        layers.push((
            "local sockets",
            "streams and datagrams: only to those that commands of the session have bound".to_owned(),
        ));
    }
    if landlock > 0 {
        let scopes = if landlock >= 6 { ", abstract sockets and signals" } else { "" };
        layers.push(("Landlock", format!("version {landlock}: writes only in the roots{scopes}")));
    }
    if rung.is_some() {
        layers.push((
            "seccomp",
            "no mounts, namespaces, io_uring, keys, bpf, kernel modules, terminal input".to_owned(),
        ));
        #[cfg(target_os = "linux")]
        layers.push(("limits", limits()));
        layers.push(("privileges", "no capabilities, no way to new ones".to_owned()));
        layers.push((
            "canary",
            "before every command a forbidden write and a way to the network are tried".to_owned(),
        ));
    }
    layers
}
