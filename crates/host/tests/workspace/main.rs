//! Attacks on the side that is not confined: what a command leaves in the workspace must not widen
//! what the next one may do, and must not make the user's own programs run something.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{collections::BTreeMap, fs, time::Duration};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    grant::{Confinement, Limits, Mechanism, SandboxRules},
    host::{Command, Exit},
};
use windlass_fakes::issue_grant;

mod git_programs;
mod world;

use world::{RUNGS, World, session};

#[tokio::test]
async fn a_root_stays_the_directory_it_was_when_the_session_began() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::create_dir_all(world.path("ws/group/app")).unwrap();
        let roots = ["ws/group/app", "ws"];
        world.run_in(&roots, "cd @/ws; mv group g2; mkdir group; ln -s @/victim group/app").await.unwrap();
        let refused = world.run_in(&roots, "echo evil > file; echo evil > @/victim/file").await;
        assert!(refused.is_err(), "{}: {refused:?}", rung.name());
        assert_eq!(fs::read_to_string(world.path("victim/file")).unwrap(), "mine", "{}", rung.name());
    }
}

#[tokio::test]
async fn a_root_behind_a_link_that_a_command_may_have_made_is_refused() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    world.run("ln -s @/victim out").await;
    let refused = world.run_in(&["ws", "ws/out"], "echo evil > @/victim/file").await.unwrap_err();
    assert!(refused.contains("the link"), "{refused}");
    // In a session that begins with it, too.
    let later = World { machine: session(world.place.path(), Mechanism::Namespaces), place: world.place };
    assert!(later.run_in(&["ws", "ws/out"], "echo evil > @/victim/file").await.is_err());
    assert_eq!(fs::read_to_string(later.path("victim/file")).unwrap(), "mine");
}

#[tokio::test]
async fn no_git_file_makes_another_directory_writable() {
    for rung in RUNGS {
        for plant in [
            // A git directory in the workspace, in the private temporary directory, and in the
            // victim.
            "mkdir g; echo @/ws/.git > g/gitdir; echo @/victim > g/commondir; echo ref: refs/heads/x > g/HEAD; \
             echo gitdir: @/ws/g > .git",
            "mkdir -p /tmp/g; cd /tmp/g; echo @/ws/.git > gitdir; echo @/victim > commondir; \
             echo ref: refs/heads/x > HEAD; echo gitdir: /tmp/g > @/ws/.git",
            "ln -s @/victim .git",
            "echo gitdir: @/victim > .git",
            "mkdir s; echo gitdir: @/victim > s/.git",
        ] {
            let Some(world) = World::on(rung) else { break };
            world.run(plant).await;
            for machine in [None, Some(session(world.place.path(), rung))] {
                let machine = machine.unwrap_or_else(|| world.machine.clone());
                let writable = vec![world.path("ws")];
                let walls = SandboxRules { writable, ..SandboxRules::default() };
                let limits = Limits { default_time: Duration::from_mins(1), ..Limits::default() };
                let cwd = world.path("ws");
                let grant = issue_grant(cwd, &Effects::none(), limits, Confinement::Sandboxed(walls));
                let script = format!("echo evil > {}/victim/file", world.place.path().display());
                let argv = ["bash", "-c", &script].map(str::to_owned).to_vec();
                let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
                let host = machine.confine(&grant).unwrap();
                let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
                assert_ne!(finished.report.exit, Exit::Code(0), "{}: {plant}", rung.name());
            }
            assert!(!world.path("ws/.git").exists(), "{}: {plant}", rung.name());
        }
    }
}

/// A file that a command plants, and the user's own command that then runs it: `evil` would make
/// `victim/pwned`.
const PLANTED: &[(&str, &str)] = &[
    // Submodules whose settings run a program: named by an index of another hash, and by one in two
    // files.
    (
        "git init -q --object-format=sha256 r; cd r; git init -q --object-format=sha256 sub; \
         git -C sub commit -q --allow-empty -m x; git add sub 2>/dev/null; git commit -qm y; \
         git -C sub config core.fsmonitor @/ws/evil",
        "cd r; git status; git -C sub status",
    ),
    (
        "git init -q r; cd r; git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub 2>/dev/null; \
         git commit -qm y; git update-index --split-index; git -C sub config core.fsmonitor @/ws/evil",
        "cd r; git status; git -C sub status",
    ),
    (
        "git init -q r; cd r; d=$(printf 's\\377b'); git init -q \"$d\"; git -C \"$d\" commit -q --allow-empty -m x; \
         git add . 2>/dev/null; git commit -qm y; git -C \"$d\" config core.fsmonitor @/ws/evil",
        "cd r; git status; git -C s* status",
    ),
    // A repository beside two hundred others.
    (
        "for i in $(seq 200); do mkdir -p m$i/.git/objects m$i/.git/refs; echo ref: refs/heads/x > m$i/.git/HEAD; done; \
         git init -q z; git -C z config core.fsmonitor @/ws/evil",
        "git -C z status",
    ),
    // A directory that becomes a repository only with the second command, by its last file.
    (
        "mkdir -p b/objects b/refs; printf '[core]\\n\\tbare = true\\n\\tfsmonitor = @/ws/evil\\n' > b/config; \
         printf '[core]\\n\\thooksPath = @/ws\\n' >> b/config\nSECOND\necho ref: refs/heads/x > b/HEAD",
        "cd b && git config core.hooksPath > @/victim/found; grep -q . @/victim/found && touch @/victim/pwned; git status",
    ),
    // An unfinished rebase whose next step is a program.
    (
        "git init -q .; git commit -q --allow-empty -m a; mkdir .git/rebase-merge; cd .git/rebase-merge; \
         echo exec @/ws/evil > git-rebase-todo; git rev-parse HEAD > onto; cp onto orig-head; \
         echo refs/heads/x > head-name; touch interactive end done; echo 1 > msgnum",
        "git rebase --continue",
    ),
    // Hooks of a new repository, in any case of letters and through a link.
    ("git init -q r; cp evil r/.git/hooks/post-commit", "git -C r commit --allow-empty -m x"),
    (
        "git init -q r; rm -r r/.git/hooks; ln -s ../.. r/.git/hooks; cp evil post-commit",
        "git -C r commit --allow-empty -m x",
    ),
    (
        "git init -q r; mkdir r/.git/hk; cp evil r/.git/hk/post-commit; git -C r config core.hooksPath .git/hk",
        "git -C r commit --allow-empty -m x",
    ),
    // Settings that lead to others.
    (
        "git init -q r; printf '[core]\\nfsmonitor = @/ws/evil\\n' > inc; git -C r config include.path @/ws/inc",
        "git -C r status",
    ),
    (
        "git init -q r; git -C r config extensions.worktreeConfig true; \
      git config --file r/.git/config.worktree core.fsmonitor @/ws/evil",
        "git -C r status",
    ),
    // A worktree whose settings are the attacker's.
    (
        "git init -q r; git -C r commit -q --allow-empty -m x; git -C r worktree add -q ../w; git -C r config extensions.worktreeConfig true; \
      git config --file r/.git/worktrees/w/config.worktree core.fsmonitor @/ws/evil",
        "git -C w status",
    ),
];

#[tokio::test]
async fn git_of_the_user_runs_nothing_that_a_command_planted() {
    for rung in RUNGS {
        for (plant, then) in PLANTED {
            let Some(world) = World::on(rung) else { break };
            let evil = "#!/bin/sh\ntouch @/victim/pwned\n".replace('@', world.place.path().to_str().unwrap());
            fs::write(world.path("ws/evil"), evil).unwrap();
            world.outside("chmod +x evil");
            for part in plant.split("\nSECOND\n") {
                world.run(part).await;
            }
            let said = world.outside(&then.replace('@', world.place.path().to_str().unwrap()));
            assert!(!world.path("victim/pwned").exists(), "{}: {plant}: {then}: {said}", rung.name());
        }
    }
}

#[tokio::test]
async fn hooks_that_the_users_settings_put_into_the_workspace_are_protected() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::write(world.path("home/.gitconfig"), "[core]\n\thooksPath = .githooks\n").unwrap();
        world.outside("git init -q .");
        world.run("mkdir .githooks; printf '#!/bin/sh\\ntouch @/victim/pwned\\n' > .githooks/post-commit; chmod +x .githooks/*").await;
        world.outside("git commit -q --allow-empty -m x");
        assert!(!world.path("victim/pwned").exists(), "{}", rung.name());
    }
}

#[tokio::test]
async fn names_that_other_programs_trust_do_not_appear() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let names = [
            ".opencode/plugin/x.ts",
            "opencode.json",
            ".zed/tasks.json",
            ".devcontainer/devcontainer.json",
            ".qwen/settings.json",
            ".kiro/x",
            ".roo/mcp.json",
            ".crush.json",
            "a/b/.ZED/x",
            ".bash_aliases",
            ".config/environment.d/x.conf",
            ".zlogout",
            ".xprofile",
            ".config/systemd/user/x.service",
            "mise.toml",
            "a/.husky/pre-commit",
            "h/.hg/hgrc",
            "j/.jj/repo/config.toml",
            "all.code-workspace",
        ];
        let script: String =
            names.map(|name| format!("mkdir -p $(dirname {name}); echo x > {name}; ")).concat();
        let finished = world.run(&script).await;
        for name in names {
            assert!(!world.path("ws").join(name).exists(), "{}: {name}", rung.name());
        }
        assert_eq!(finished.report.denials.len(), names.len(), "{:?}", finished.report.denials);
    }
}

#[tokio::test]
async fn in_a_home_directory_nothing_with_a_dot_appears_or_changes() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::create_dir_all(world.path("home/.tool/plugins")).unwrap();
        fs::write(world.path("home/.toolrc"), "mine").unwrap();
        let script = "cd @/home; echo evil > .newrc; mkdir .app; echo evil > .app/run; echo evil > .tool/plugins/x; \
                      echo evil > .toolrc; mkdir -p .cache/x src/.deep; echo fine > .cache/x/y; echo fine > src/.deep/z";
        let (finished, _) = world.run_in(&["home"], script).await.unwrap();
        let left = world.outside("cd ../home; cat .newrc .app/run .tool/plugins/x 2>/dev/null; cat .toolrc");
        assert_eq!(left, "mine", "{}: {:?}", rung.name(), finished.report.denials);
        assert_eq!(
            world.outside("cd ../home; cat .cache/x/y src/.deep/z"),
            "fine\nfine\n",
            "{}",
            rung.name()
        );
    }
}

#[tokio::test]
async fn a_copy_of_a_repository_has_settings_of_its_own() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside(
            "git init -q -b main r; cd r; touch a; git add a; git commit -qm x; git config alias.evil '!id'; \
             git remote add up https://example.invalid/x",
        );
        let finished = world.run("cp -r r copy; cp -a r/.git bare.git").await;
        for copy in ["copy", "bare.git"] {
            let printed = world.outside(&format!(
                "cd {copy}; git log --format=%s; git config remote.up.url; git config alias.evil; ls -a .git . 2>/dev/null | grep refused"
            ));
            assert_eq!(
                printed,
                "x\nhttps://example.invalid/x\n",
                "{} {copy} {:?}",
                rung.name(),
                finished.report.denials
            );
        }
        assert_eq!(world.outside("git -C r config alias.evil"), "!id\n", "{}", rung.name());
    }
}

/// Writes an index that lists a path which git itself would refuse to add: `AAAA` becomes `.git`,
/// with a new checksum.
const FORGED_INDEX: &str = "mkdir -p AAAA/hooks; printf '#!/bin/sh\\ntouch @/victim/PWNED\\n' > AAAA/hooks/post-checkout; \
     chmod +x AAAA/hooks/post-checkout; git add AAAA; rm -r AAAA; export LC_ALL=C; \
     head -c -20 .git/index | sed 's/AAAA/.git/' > body; \
     { cat body; printf \"$(sha1sum body | cut -c1-40 | sed 's/../\\\\x&/g')\"; } > .git/index; rm body";

#[tokio::test]
async fn an_index_that_lists_hooks_is_moved_aside_and_others_stay() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
        let finished = world.run("echo b > b; git add b; git status -s").await;
        assert_eq!(finished.report.denials, [], "{}", rung.name());
        assert_eq!(world.outside("git status -s"), "A  b\n", "{}", rung.name());
        for repository in [".", "new", "node_modules/new"] {
            let script = format!("git init -q {repository}; cd {repository}; {FORGED_INDEX}");
            let finished = world.run(&script).await;
            world.outside(&format!(
                "cd {repository}; git checkout -q -- .; git reset -q; git checkout -q -- ."
            ));
            assert!(!world.path("victim/PWNED").exists(), "{} {repository}", rung.name());
            assert_eq!(finished.report.denials.len(), 1, "{:?}", finished.report.denials);
        }
    }
}

#[tokio::test]
async fn repositories_are_found_in_directories_named_like_those_of_objects() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
        let places = ["objects/aa", "src/objects/bb/x", ".git/objects/cc/y"];
        for place in places {
            let script = format!(
                "mkdir -p {place}; git init -q {place}; git -C {place} config core.fsmonitor 'touch @/victim/PWNED;'; \
                 echo evil > {place}/.envrc"
            );
            world.run(&script).await;
            world.outside(&format!("git -C {place} status; git status"));
            assert!(!world.path("victim/PWNED").exists(), "{} {place}", rung.name());
            assert!(!world.path("ws").join(place).join(".envrc").exists(), "{} {place}", rung.name());
        }
    }
}

#[tokio::test]
async fn what_a_background_command_changes_after_a_check_is_found_by_a_later_one() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside("git init -q -b main .; echo mine > .envrc; git add -f .envrc; git commit -qm x");
        let background = "git init -q new; git worktree add -q wt; exec 3>>new/.git/config; touch made; \
                          while [ ! -e checked ]; do sleep 0.05; done; \
                          printf '[core]\\n\\tfsmonitor = touch @/victim/PWNED;\\n' >&3; echo evil > wt/.envrc; touch changed; sleep 60";
        let writable = vec![world.path("ws")];
        let walls = SandboxRules { writable: writable.clone(), ..SandboxRules::default() };
        let grant = issue_grant(
            writable[0].clone(),
            &Effects::none(),
            Limits::default(),
            Confinement::Sandboxed(walls),
        );
        let host = world.machine.confine(&grant).unwrap();
        let script = background.replace('@', world.place.path().to_str().unwrap());
        let argv = ["bash".to_owned(), "-c".to_owned(), script].to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let session = host
            .open(&command, windlass_contract::host::Keyboard::Absent, std::sync::Arc::new(|_: &[u8]| {}))
            .await
            .unwrap();
        world.run("while [ ! -e made ]; do sleep 0.05; done").await;
        world.run("touch checked; while [ ! -e changed ]; do sleep 0.05; done").await;
        session.end().await;
        world.outside("git -C new status");
        assert!(!world.path("victim/PWNED").exists(), "{}", rung.name());
        assert!(!world.outside("cat wt/.envrc").contains("evil"), "{}", rung.name());
    }
}

#[tokio::test]
async fn what_the_users_own_settings_lead_to_in_the_workspace_is_protected() {
    for rung in RUNGS {
        for (setting, plant) in [
            (
                "git config --global include.path @/ws/extra",
                "printf '[core]\\n\\tfsmonitor = touch @/victim/PWNED;\\n' > extra",
            ),
            (
                "echo x > extra; git config --global includeIf.gitdir:@/.path @/ws/extra",
                "printf '[core]\\n\\tfsmonitor = touch @/victim/PWNED;\\n' > extra",
            ),
            (
                "git config --global core.hooksPath .githooks",
                "git init -q sub; mkdir sub/.githooks; printf '#!/bin/sh\\ntouch @/victim/PWNED\\n' > sub/.githooks/pre-commit; \
                 chmod +x sub/.githooks/pre-commit",
            ),
            (
                "git worktree add -q wt; git config core.hooksPath .githooks",
                "mkdir wt/.githooks; printf '#!/bin/sh\\ntouch @/victim/PWNED\\n' > wt/.githooks/pre-commit; \
                 chmod +x wt/.githooks/pre-commit",
            ),
            (
                "mkdir t; echo true > t/watch; chmod +x t/watch; git config core.fsmonitor 't/watch -x'",
                "printf '#!/bin/sh\\ntouch @/victim/PWNED\\n' > t/watch",
            ),
        ] {
            let Some(world) = World::on(rung) else { break };
            let top = world.place.path().to_str().unwrap();
            world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
            world.outside(&setting.replace('@', top));
            world.run(plant).await;
            world.outside("git status; for d in sub wt; do cd $d && touch b && git add b && git commit -qm y; cd ..; done");
            assert!(!world.path("victim/PWNED").exists(), "{}: {setting}", rung.name());
        }
    }
}

#[tokio::test]
async fn directories_that_are_shut_in_each_other_are_looked_through() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let script = "mkdir -p a/b/c; echo evil > a/b/c/.envrc; chmod 0 a/b/c; chmod 0 a/b; chmod 0 a";
        world.run(script).await;
        let left = world.outside("chmod -R u+rwX a; ls -A a/b/c");
        assert!(!left.lines().any(|line| line == ".envrc"), "{}: {left}", rung.name());
    }
}

#[tokio::test]
async fn fifos_and_devices_cost_an_error_and_no_hang() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside("git init -q .; git commit -q --allow-empty -m x");
        let made = "for f in .git/index .git/MERGE_MSG .git/rebase-merge .vscode .envrc; do mkfifo $f; done; \
                    git init -q r; rm r/.git/config; mkfifo r/.git/config; ln -s /dev/zero r/.git/index; \
                    mkdir s; mkfifo s/.git; mkdir -p t; ln -s /dev/zero t/.git";
        world.run(made).await;
        assert_eq!(world.run("echo on").await.output, b"on\n", "{}", rung.name());
        for name in [".git/MERGE_MSG", ".vscode", ".envrc", "r/.git/config", "s/.git", "t/.git"] {
            assert!(world.path("ws").join(name).symlink_metadata().is_err(), "{}: {name}", rung.name());
        }
    }
}

#[tokio::test]
async fn a_directory_outside_is_not_renamed_while_another_command_swaps_links() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    fs::create_dir(world.path("victim/.vscode")).unwrap();
    let swap = "mkdir -p a/.vscode; for i in $(seq 400); do mv a b; ln -s ../victim a; rm a; mv b a; done 2>/dev/null; true";
    let plant = "for i in 1 2 3; do mkdir -p a/.vscode 2>/dev/null; sleep 0.01; done; true";
    for _ in 0..5 {
        let _both = tokio::join!(world.run_in(&["ws"], swap), world.run_in(&["ws"], plant));
    }
    assert!(world.path("victim/.vscode").is_dir());
    assert_eq!(fs::read_dir(world.path("victim")).unwrap().count(), 2);
}

/// Everyday commands of git that change its settings, and what is there afterwards.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("git checkout -q -b t --track main", "git config branch.t.merge", "refs/heads/main"),
    ("git init -q --bare b.git; git push -q -u ./b.git main", "git config branch.main.remote", "./b.git"),
    (
        "git branch -q x; git config branch.x.description d; git branch -m x y",
        "git config branch.y.description",
        "d",
    ),
    ("git remote add o ../x; git remote rename o p", "git config remote.p.url", "../x"),
    ("git remote add o ../x; git remote remove o", "git config remote.o.url || echo none", "none"),
    ("git sparse-checkout set src", "git config core.sparseCheckout", "true"),
    ("git config user.name Someone", "git config user.name", "Someone"),
    (
        "git -c protocol.file.allow=always submodule add -q ./ sub",
        "git config submodule.sub.url | grep -c ws; git -C sub status -s",
        "1",
    ),
    ("git worktree add -q wt -b w", "git -C wt status -s; git -C wt branch --show-current", "w"),
];

#[tokio::test]
async fn everyday_commands_of_git_keep_their_settings_and_those_of_the_user_stay() {
    for rung in RUNGS {
        for (script, then, expected) in SETTINGS {
            let Some(world) = World::on(rung) else { break };
            world.outside(
                "git init -q -b main .; mkdir src; touch src/a; git add .; git commit -qm x; git config alias.mine status; \
                 git config core.pager less",
            );
            let finished = world.run_in(&["ws"], script).await.unwrap().0;
            assert_eq!(
                finished.report.exit,
                Exit::Code(0),
                "{}: {script}: {:?}",
                rung.name(),
                String::from_utf8_lossy(&finished.output)
            );
            assert_eq!(finished.report.denials, [], "{}: {script}", rung.name());
            assert_eq!(world.outside(then).trim(), *expected, "{}: {script}", rung.name());
            assert_eq!(
                world.outside("git config alias.mine; git config core.pager"),
                "status\nless\n",
                "{script}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_command_shuts_or_buries_is_checked_all_the_same() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let evil = "printf '[core]\\n\\tfsmonitor = evil\\n'";
        let script = format!(
            "git init -q q; {evil} > q/.git/config; chmod 311 q/.git
             git init -q h; echo evil > h/.git/hooks/pre-commit; chmod 311 h/.git/hooks
             mkdir -p v/.vscode; echo x > v/.vscode/tasks.json; chmod 311 v/.vscode; chmod 111 v
             git init -q o; ln -s @/victim/file o/.git/objects/info/commit-graph; ln -s @/victim o/.git/objects/pk
             p=$(printf 'd/%.0s' $(seq 200)); mkdir -p $p; git init -q $p; {evil} > $p/.git/config"
        );
        let finished = world.run(&script).await;
        let left = world.outside(
            "chmod 755 v; ls -d v/.vscode h/.git/hooks/pre-commit o/.git/objects/info/commit-graph o/.git/objects/pk 2>/dev/null; \
             cat q/.git/config | grep fsmonitor; ls -d $(printf 'd/%.0s' $(seq 200)) 2>/dev/null",
        );
        assert_eq!(left, "", "{}: {:?}", rung.name(), finished.report.denials);
    }
}
