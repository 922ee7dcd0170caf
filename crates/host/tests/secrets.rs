//! Secrets, reached by every way but their usual path: commands may not read them, on every rung
//! this machine has.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::Command,
    secret_paths::home_secrets,
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// A text that no command may print.
const CONTENT: &str = "XSECRETX";

/// Set where the test has started itself again, in a mount namespace of its own.
const PLACE: &str = "WINDLASS_TEST_PLACE";

/// A place with a home and a workspace, outside of what commands have a private view of.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for directory in ["ws", "home/.ssh"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
    }
    fs::write(place.path().join("home/.ssh/id_rsa"), CONTENT).unwrap();
    place
}

/// The hosts for a workspace, one for each rung this machine has.
fn hosts(place: &Path, walls: &SandboxRules) -> Vec<(Mechanism, std::sync::Arc<dyn Host>)> {
    let home = place.join("home").to_str().unwrap().to_owned();
    let variables = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), home)]);
    let machines = [Machine::new(variables.clone()), Machine::new(variables).without_namespaces()];
    let mut hosts = Vec::new();
    for (machine, rung) in machines.into_iter().zip([Mechanism::Namespaces, Mechanism::Landlock]) {
        if machine.diagnose().rung != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`", rung.name());
            continue;
        }
        let walls = SandboxRules { writable: vec![place.join("ws")], ..walls.clone() };
        let confinement = Confinement::Sandboxed(walls);
        let grant = issue_grant(place.join("ws"), &Effects::none(), Limits::default(), confinement);
        hosts.push((rung, machine.confine(&grant).unwrap()));
    }
    hosts
}

async fn output(host: &dyn Host, script: &str) -> String {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
    let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
    String::from_utf8_lossy(&finished.output).into_owned()
}

/// Asserts that neither commands nor file tools read any of these files.
async fn assert_hidden(place: &Path, files: &[PathBuf]) {
    for (rung, host) in hosts(place, &SandboxRules::default()) {
        for file in files {
            let printed = output(&*host, &format!("cat '{}'", file.display())).await;
            assert!(!printed.contains(CONTENT), "{}: {}", rung.name(), file.display());
            assert!(host.files().open(file).await.is_err(), "{}: {}", rung.name(), file.display());
        }
    }
}

#[tokio::test]
async fn every_credential_file_of_a_home_is_hidden() {
    let place = place();
    let mut files = Vec::new();
    for secret in home_secrets() {
        let mut path = place.path().join("home").join(secret.path.replace('*', "x"));
        if secret.kind == windlass_contract::secret_paths::SecretKind::Directory {
            path.push("inside");
        }
        // Two lines of the table may name a file and a directory of one name.
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(&path, CONTENT).is_ok() {
            files.push(path);
        }
    }
    assert!(files.len() > 600, "{}", files.len());
    let script = format!("grep -rl {CONTENT} '{}/home' 2>/dev/null; echo done", place.path().display());
    for (rung, host) in hosts(place.path(), &SandboxRules::default()) {
        assert_eq!(output(&*host, &script).await.lines().last(), Some("done"), "{}", rung.name());
        let printed = output(&*host, &script).await;
        assert!(!printed.contains("/home/."), "{}: {printed}", rung.name());
        for file in &files {
            assert!(host.files().open(file).await.is_err(), "{}: {}", rung.name(), file.display());
        }
    }
}

#[tokio::test]
async fn what_was_hidden_stays_hidden_when_it_is_moved_during_the_session() {
    let place = place();
    let (secret, moved) = (place.path().join("home/.ssh"), place.path().join("home/old-keys"));
    for (rung, host) in hosts(place.path(), &SandboxRules::default()) {
        let read = |from: &Path| format!("cat '{}'/id_rsa", from.display());
        assert!(!output(&*host, &read(&secret)).await.contains(CONTENT), "{}", rung.name());
        fs::rename(&secret, &moved).unwrap();
        assert!(!output(&*host, &read(&moved)).await.contains(CONTENT), "{}", rung.name());
        assert!(host.files().open(&moved.join("id_rsa")).await.is_err(), "{}", rung.name());
        fs::rename(&moved, &secret).unwrap();
    }
}

#[tokio::test]
async fn what_a_link_inside_a_secret_directory_leads_to_is_hidden() {
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("home/dotfiles/ssh/more")).unwrap();
    for name in ["home/dotfiles/ssh/id_ed25519", "home/dotfiles/ssh/more/key", "home/dotfiles/netrc"] {
        fs::write(path(name), CONTENT).unwrap();
    }
    fs::write(path("home/dotfiles/README"), "readable").unwrap();
    symlink("../dotfiles/ssh/id_ed25519", path("home/.ssh/id_ed25519")).unwrap();
    symlink(path("home/dotfiles/ssh/more"), path("home/.ssh/more")).unwrap();
    symlink("dotfiles/netrc", path("home/.netrc")).unwrap();
    symlink("/dev/null", path("home/.bash_history")).unwrap();
    let files = ["home/dotfiles/ssh/id_ed25519", "home/dotfiles/ssh/more/key", "home/dotfiles/netrc"];
    assert_hidden(place.path(), &files.map(path)).await;
    for (rung, host) in hosts(place.path(), &SandboxRules::default()) {
        let printed = output(&*host, "cat ~/dotfiles/README && echo > /dev/null && cat /dev/null").await;
        assert_eq!(printed, "readable", "{}", rung.name());
    }
}

#[tokio::test]
async fn settings_that_programs_fail_without_say_nothing() {
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("home/.m2")).unwrap();
    for name in ["home/.npmrc", "home/.yarnrc.yml", "home/.m2/settings.xml"] {
        fs::write(path(name), CONTENT).unwrap();
    }
    for (rung, host) in hosts(place.path(), &SandboxRules::default()) {
        let script =
            "cat ~/.npmrc ~/.yarnrc.yml ~/.m2/settings.xml && echo read; echo x > ~/.npmrc && echo written";
        let printed = output(&*host, script).await;
        assert!(!printed.contains(CONTENT) && !printed.contains("written"), "{}: {printed}", rung.name());
        // Only mounts can put another file in its place.
        if rung == Mechanism::Namespaces {
            assert!(printed.starts_with("<settings/>\nread\n"), "{printed}");
        }
    }
    assert_eq!(fs::read_to_string(path("home/.npmrc")).unwrap(), CONTENT);
}

#[tokio::test]
async fn what_is_granted_can_be_read_through_its_link() {
    let place = place();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("home/dotfiles")).unwrap();
    fs::write(path("home/dotfiles/config"), "granted").unwrap();
    symlink("../dotfiles/config", path("home/.ssh/config")).unwrap();
    let walls =
        SandboxRules { readable_again: vec![path("home/dotfiles/config")], ..SandboxRules::default() };
    for (rung, host) in hosts(place.path(), &walls) {
        assert_eq!(output(&*host, "cat ~/dotfiles/config").await, "granted", "{}", rung.name());
        assert!(!output(&*host, "cat ~/.ssh/id_rsa").await.contains(CONTENT), "{}", rung.name());
    }
}

#[tokio::test]
async fn a_secret_is_hidden_at_every_mount_point() {
    if let Some(place) = env::var_os(PLACE).map(PathBuf::from) {
        let files = ["keys/id_rsa", "whole/.ssh/id_rsa", "one"].map(|name| place.join(name));
        for file in &files {
            assert_eq!(fs::read_to_string(file).unwrap(), CONTENT, "the mount is there");
        }
        return assert_hidden(&place, &files).await;
    }
    let place = place();
    fs::create_dir(place.path().join("keys")).unwrap();
    fs::create_dir(place.path().join("whole")).unwrap();
    fs::write(place.path().join("one"), "").unwrap();
    let mounts = "cd \"$1\" && mount --bind home/.ssh keys && mount --bind home whole && \
                  mount --bind home/.ssh/id_rsa one && echo mounted && exec \"$2\" --exact \
                  a_secret_is_hidden_at_every_mount_point --nocapture";
    let own = env::current_exe().unwrap();
    let ran = process::Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", mounts, "sh"])
        .args([place.path(), own.as_path()])
        .env(PLACE, place.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    if !printed.contains("mounted") {
        eprintln!("skipped: nothing can be mounted here: {}", String::from_utf8_lossy(&ran.stderr));
        return;
    }
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test]
async fn secrets_of_the_system_are_hidden_from_root_too() {
    let place = place();
    let known = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key"];
    let readable: Vec<_> = known.into_iter().filter(|path| fs::read(path).is_ok()).collect();
    if readable.is_empty() {
        eprintln!("skipped: this user can read no secret of the system");
    }
    for (rung, host) in hosts(place.path(), &SandboxRules::default()) {
        for path in &readable {
            let printed = output(&*host, &format!("cat {path} >/dev/null && echo read")).await;
            assert!(!printed.contains("read"), "{}: {path}: {printed}", rung.name());
            assert!(host.files().open(Path::new(path)).await.is_err(), "{path}");
        }
    }
}
