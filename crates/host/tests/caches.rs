//! Caches of package managers, and the second directory for temporary files, as confined commands
//! have them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    effects::Network,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::Command,
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// A place with a workspace and a home, of which that of Windlass is hidden.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for directory in ["ws", "home/.npm", "home/.windlass"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
    }
    fs::write(place.path().join("home/.windlass/config.toml"), "SECRET").unwrap();
    place
}

/// The hosts for a workspace without network, one for each rung this machine has.
fn hosts(place: &Path, writable: &[&str]) -> Vec<(Mechanism, Arc<dyn Host>)> {
    hosts_with(place, writable, Network::None)
}

fn hosts_with(place: &Path, writable: &[&str], network: Network) -> Vec<(Mechanism, Arc<dyn Host>)> {
    let home = place.join("home");
    let home = home.to_str().unwrap().to_owned();
    let variables = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), home)]);
    let machine =
        || Machine::new(variables.clone()).with_package_caches(place.join("home/.windlass/cache/packages"));
    let mut hosts = Vec::new();
    for (machine, rung) in
        [(machine(), Mechanism::Namespaces), (machine().without_namespaces(), Mechanism::Landlock)]
    {
        if machine.diagnose().rung != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`", rung.name());
            continue;
        }
        let writable = writable.iter().map(|name| place.join(name)).collect();
        let confinement =
            Confinement::Sandboxed(SandboxRules { writable, network, ..SandboxRules::default() });
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

#[tokio::test]
async fn a_cache_can_be_written_and_is_kept_while_the_users_own_and_our_home_are_not() {
    let place = place();
    for (rung, host) in hosts(place.path(), &["ws"]) {
        let filled = "mkdir -p $npm_config_cache/x && echo kept > $npm_config_cache/x/y && echo made";
        assert_eq!(output(&*host, filled).await, "made\n", "{}", rung.name());
        assert_eq!(output(&*host, "cat $npm_config_cache/x/y").await, "kept\n", "{}", rung.name());
        for script in [
            "echo x > ~/.npm/x && echo made",
            "cat ~/.windlass/config.toml",
            "ls ~/.windlass/sessions",
            "echo x > ~/.windlass/cache/x && echo made",
            "echo x > ~/.windlass/x && echo made",
        ] {
            let printed = output(&*host, script).await;
            assert!(!printed.contains("SECRET") && !printed.contains("made"), "{}: {script}", rung.name());
        }
        assert!(!place.path().join("home/.npm/x").exists());
    }
}

#[tokio::test]
async fn a_cache_that_the_user_has_made_writable_is_left_as_it_is() {
    let place = place();
    for (rung, host) in hosts(place.path(), &["ws", "home/.npm"]) {
        let printed = output(&*host, "echo [$npm_config_cache]; echo x > ~/.npm/x && echo made").await;
        assert_eq!(printed, "[]\nmade\n", "{}", rung.name());
    }
}

#[tokio::test]
async fn maven_finds_what_the_user_has_installed_with_the_network_and_without_it_later() {
    let place = place();
    let own = place.path().join("home/.m2/repository/x/own");
    fs::create_dir_all(own.join("1")).unwrap();
    fs::write(own.join("maven-metadata-local.xml"), "").unwrap();
    fs::write(own.join("1/own-1.jar"), "user").unwrap();
    let repository = "cd $(echo $MAVEN_OPTS | sed 's/.*repo.local=\\([^ ]*\\).*/\\1/')/x/own/1 && ";
    for (rung, host) in hosts(place.path(), &["ws"]) {
        assert_eq!(output(&*host, "echo [$MAVEN_OPTS]").await, "[]\n", "{}: it can be read", rung.name());
    }
    for (rung, host) in hosts_with(place.path(), &["ws"], Network::Any) {
        let printed =
            output(&*host, &format!("{repository} cat own-1.jar && echo -n mine > own-1.jar")).await;
        assert!(["user", "mine"].contains(&printed.as_str()), "{}: {printed}", rung.name());
    }
    for (rung, host) in hosts(place.path(), &["ws"]) {
        let printed = output(&*host, &format!("{repository} cat own-1.jar")).await;
        assert_eq!(printed, "mine", "{}", rung.name());
    }
    assert_eq!(fs::read_to_string(own.join("1/own-1.jar")).unwrap(), "user");
}

#[tokio::test]
async fn what_may_write_nothing_has_no_cache() {
    let place = place();
    for (rung, host) in hosts(place.path(), &[]) {
        assert_eq!(output(&*host, "echo [$npm_config_cache]").await, "[]\n", "{}", rung.name());
    }
}

#[tokio::test]
async fn the_second_directory_for_temporary_files_is_private_and_kept() {
    let place = place();
    let Some((_, host)) =
        hosts(place.path(), &["ws"]).into_iter().find(|(rung, _)| *rung == Mechanism::Namespaces)
    else {
        return;
    };
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(
        output(&*host, &format!("ls -A /var/tmp; echo x > /var/tmp/own-{name} && echo made")).await,
        "made\n"
    );
    assert_eq!(output(&*host, &format!("cat /var/tmp/own-{name}")).await, "x\n");
    assert!(!Path::new("/var/tmp").join(format!("own-{name}")).exists());
}

#[tokio::test]
async fn a_workspace_below_var_tmp_is_seen_with_what_is_beside_it() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for directory in ["ws", "home/.ssh"] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
    }
    fs::write(place.path().join("beside"), "beside").unwrap();
    fs::write(place.path().join("home/.ssh/id"), "SECRET").unwrap();
    for (rung, host) in hosts(place.path(), &["ws"]) {
        let printed =
            output(&*host, "echo x > made && cat ../beside; echo y > ../beside; cat ~/.ssh/id").await;
        assert!(printed.starts_with("beside") && !printed.contains("SECRET"), "{}: {printed}", rung.name());
        assert_eq!(fs::read_to_string(place.path().join("beside")).unwrap(), "beside");
        assert_eq!(fs::read_to_string(place.path().join("ws/made")).unwrap(), "x\n");
    }
}
