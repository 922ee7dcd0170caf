//! Files that a call opens itself are held to the rules of its commands.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    edit::{Action, Change, CommitError, Expected},
    files::FileError,
    grant::{Confinement, Limits, SandboxRules},
    host::Command,
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// A home with a secret, and a workspace in it with a repository.
fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = place.path().canonicalize().unwrap();
    for directory in ["ws/.git/hooks", "ws/sub", ".ssh/public"] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    fs::write(home.join(".ssh/id_rsa"), "secret").unwrap();
    fs::write(home.join(".ssh/public/key"), "public").unwrap();
    (place, home)
}

fn host(home: &Path, walls: SandboxRules) -> Arc<dyn Host> {
    let variables = [("PATH", "/usr/bin:/bin"), ("HOME", home.to_str().unwrap())];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let walls = SandboxRules { writable: vec![home.join("ws")], ..walls };
    let confinement = Confinement::Sandboxed(walls);
    let grant = issue_grant(home.join("ws"), &Effects::none(), Limits::default(), confinement);
    Machine::new(BTreeMap::from(variables)).confine(&grant).unwrap()
}

async fn read(host: &dyn Host, path: impl AsRef<Path>) -> Result<String, FileError> {
    let bytes = host.files().open(path.as_ref()).await?.read_at(0, 100).await?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn names_that_make_other_programs_run_code_are_not_written() {
    let (_place, home) = place();
    symlink(".git/hooks", home.join("ws/innocent")).unwrap();
    let host = host(&home, SandboxRules::default());
    let write = async |path: &str| {
        let action = Action::Write(b"x".to_vec());
        let change = Change { path: path.into(), expected: Expected::Absent, action };
        host.files().commit(&"call".into(), vec![change]).await
    };
    for path in [".git/hooks/pre-commit", "innocent/pre-commit", "sub/.git/config", ".envrc", ".vscode/x"] {
        let Err(CommitError::File(FileError::Denied(denial))) = write(path).await else {
            panic!("`{path}` was written")
        };
        assert_eq!(denial.rule, "a protected name: other programs run what it says", "{path}");
    }
    write(".gitignore").await.unwrap();
}

#[tokio::test]
async fn what_is_hidden_from_commands_is_not_opened_but_for_what_is_shown_in_it() {
    let (_place, home) = place();
    let hidden = host(&home, SandboxRules::default());
    assert!(matches!(read(&*hidden, "../.ssh/public/key").await, Err(FileError::Denied(_))));
    let shown = SandboxRules { readable_again: vec![home.join(".ssh/public")], ..SandboxRules::default() };
    let shown = host(&home, shown);
    assert_eq!(read(&*shown, "../.ssh/public/key").await.unwrap(), "public");
    assert!(matches!(read(&*shown, "../.ssh/id_rsa").await, Err(FileError::Denied(_))));
    let asked =
        host(&home, SandboxRules { unreadable: vec![home.join("ws/sub")], ..SandboxRules::default() });
    assert!(matches!(read(&*asked, "sub/x").await, Err(FileError::Denied(_))));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_command_left_in_its_tmp_is_read_under_the_same_name() {
    let (_place, home) = place();
    let host = host(&home, SandboxRules::default());
    let path = format!("/tmp/windlass-test-{}", std::process::id());
    assert!(matches!(read(&*host, &path).await, Err(FileError::NotFound { .. })));
    let argv = ["sh", "-c", &format!("echo left > \"$TMPDIR\"/{}", &path[5..])].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
    host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
    assert_eq!(read(&*host, &path).await.unwrap(), "left\n");
}
