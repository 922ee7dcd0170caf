//! Tests of this module.

use super::*;

fn shows(path: &str) -> bool {
    in_contents(path, path.contains(['*', '?', '[']), &WorkingDirectories::starting(None)).is_some()
}

#[test]
fn secrets_are_known_by_their_places() {
    for path in [
        "~/.ssh/id_rsa",
        "$HOME/.aws/credentials",
        "/home/u/.config/gh/hosts.yml",
        "../../.ssh/known_hosts",
        "/etc/shadow",
        "/etc/../etc/shadow",
        "~/.SSH/ID_RSA",
        ".env",
        "app/.env.production",
        ".env~",
        "env.production",
        "deploy_key",
        "private.key~",
        ".netrc.save",
        ".npmrc.bak.1",
        "prod.env",
        "server.pem",
        "config/master.key",
        "/proc/self/environ",
        "/proc/1/../1/environ",
        "/dev/sda",
        "/dev/tcp/1.2.3.4/80",
        "/run/secrets/db",
        "~/.bash_history",
        "HEAD:.env",
        "credentials.json",
        "terraform.tfstate",
        ".ssh/*",
        "~/.s*/id*",
        "*.p?m",
        ".e*",
        "id_*",
        "~/*",
        "/etc/*",
        "/*",
        "../*",
        "*secret*.yml",
    ] {
        assert!(shows(path), "{path}");
    }
}

#[test]
fn every_path_of_the_table_is_a_secret_in_a_home_directory_and_in_the_system() {
    for secret in home_secrets() {
        for home in ["~", "/home/u", "/root"] {
            let path = format!("{home}/{}", secret.path.replace('*', "x"));
            assert!(kept_in(&path, false, &WorkingDirectories::starting(None)).is_some(), "{path}");
            let inside = format!("{path}/inside");
            let is_file = secret.kind == SecretKind::File;
            assert!(
                is_file || kept_in(&inside, false, &WorkingDirectories::starting(None)).is_some(),
                "{inside}"
            );
        }
    }
    for secret in system_secrets() {
        let path = format!("/{}", secret.path.replace('*', "x"));
        assert!(kept_in(&path, false, &WorkingDirectories::starting(None)).is_some(), "{path}");
    }
}

#[test]
fn a_project_may_have_what_would_be_a_secret_in_a_home_directory() {
    for path in [".circleci/config.yml", ".drone.yml", "snap/firefox/x", ".slack/hooks", ".sentry/x"] {
        assert!(!shows(path), "{path}");
        assert!(shows(&format!("~/{path}")), "{path}");
    }
}

#[test]
fn everyday_files_are_no_secrets() {
    for path in [
        "README.md",
        "src/main.rs",
        "src/token.rs",
        "secrets.py",
        "credentials.ts",
        "docs/env.md",
        ".env.example",
        "id_rsa.pub",
        "*.rs",
        "*",
        "src/*",
        "README*",
        "*.json",
        "/etc/os-release",
        "/etc/hosts",
        "/proc/cpuinfo",
        "/dev/null",
        "~/projects/x/a.txt",
        "../other/a.txt",
        "HEAD~3",
        "HEAD~",
        "a.log.1",
        "main.rs.orig",
        "monkey.txt",
        "environment.yml",
    ] {
        assert!(!shows(path), "{path}");
    }
}

#[test]
fn reading_everything_below_a_home_directory_finds_secrets() {
    let somewhere = WorkingDirectories::starting(None);
    for path in [
        "/",
        "~",
        "$HOME",
        "/home",
        "/home/u",
        "/root",
        "..",
        "../..",
        "/etc",
        "~/.config",
        "/proc",
        "a/../..",
    ] {
        assert!(in_everything_below(path, &somewhere).is_some(), "{path}");
    }
    for path in [".", "src", "../other", "/home/u/project", "/usr/include", "~/project"] {
        assert!(in_everything_below(path, &somewhere).is_none(), "{path}");
    }
    let home = WorkingDirectories::starting(Some(std::path::Path::new("/home/u")));
    assert!(in_everything_below(".", &home).is_some());
}
