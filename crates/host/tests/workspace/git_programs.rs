//! Programs that git runs, files that it waits for, and addresses that it connects to, in places
//! that are easily overlooked.

use windlass_contract::grant::Mechanism;

use crate::world::{RUNGS, World};

/// A case: what the user has, what a command does, and what the user does then. `@` stands for the
/// place of it all, and `EVIL` for a program that makes `victim/PWNED`.
struct Case {
    before: &'static str,
    plant: &'static str,
    then: &'static str,
}

const fn case(before: &'static str, plant: &'static str, then: &'static str) -> Case {
    Case { before, plant, then }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Repositories where files are scanned by their names alone.
    case("", "mkdir -p node_modules/x; cd node_modules/x; git init -q; EVIL .git/hooks/pre-commit", "git -C node_modules/x commit --allow-empty -m x"),
    case("", "mkdir -p target/x; cd target/x; git init -q; EVIL .git/hooks/pre-commit", "git -C target/x commit --allow-empty -m x"),
    case(
        "",
        "mkdir -p node_modules/b/objects node_modules/b/refs node_modules/b/hooks; EVIL node_modules/b/hooks/pre-commit\nSECOND\n\
         printf '[core]\\n\\tbare = false\\n\\tworktree = ..\\n' > node_modules/b/config; echo ref: refs/heads/x > node_modules/b/HEAD",
        "git --git-dir=node_modules/b --work-tree=. commit --allow-empty -m x",
    ),
    case(
        "",
        "mkdir -p node_modules/x real/objects real/refs; EVIL evil; cd node_modules/x; git init -q; touch a; git add a; \
         printf '[core]\\n\\tbare = false\\n\\tfsmonitor = @/ws/evil\\n' > ../../real/config; echo ../../../real > .git/commondir",
        "git -C node_modules/x status",
    ),
    case(
        "",
        "mkdir -p node_modules/x; cd node_modules/x; git init -q; git init -q --bare .git/modules/m; EVIL .git/modules/m/hooks/pre-commit",
        "cd node_modules/x; git --git-dir=.git/modules/m --work-tree=. commit --allow-empty -m x",
    ),
    // Programs that settings name relative to a working tree, in others than the first.
    case(
        "mkdir .githooks; echo 'exit 0' > .githooks/pre-commit; git add .; git commit -qm h; git config core.hooksPath .githooks",
        "git worktree add -q wt; EVIL wt/.githooks/pre-commit",
        "git -C wt commit --allow-empty -m x",
    ),
    case(
        "mkdir t; echo 'exit 0' > t/fs; chmod +x t/fs; git add .; git commit -qm h; git worktree add -q wt; git config core.fsmonitor ./t/fs",
        "EVIL wt/t/fs",
        "git -C wt status",
    ),
    case(
        "mkdir t; echo 'exit 0' > t/fs; chmod +x t/fs; git add .; git commit -qm h; git config core.fsmonitor ./t/fs",
        "git worktree add -q wt; rm -r wt/t; mkdir elsewhere; EVIL elsewhere/fs; ln -s ../elsewhere wt/t",
        "git -C wt status",
    ),
    case("git config --global core.hooksPath .myhooks", "git worktree add -q wt; mkdir wt/.myhooks; EVIL wt/.myhooks/pre-commit", "git -C wt commit --allow-empty -m x"),
    case("git config core.fsmonitor ./not/yet", "mkdir not; EVIL not/yet", "git status"),
    // Settings whose names nobody has listed.
    case("EVIL0 key.sh; git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand ./key.sh", "EVIL key.sh", "git commit -S --allow-empty -m x"),
    case("EVIL0 tool.sh; git config some.newSetting 'sh tool.sh -x'", "EVIL tool.sh", "$(git config some.newSetting)"),
    case("EVIL0 refs.sh; git config core.alternateRefsCommand ./refs.sh", "EVIL refs.sh", "./refs.sh"),
    case(
        "mkdir t; EVIL0 t/p.sh; git config pager.log '$(git rev-parse --show-toplevel)/t/p.sh --file=x'",
        "EVIL t/p.sh",
        "sh -c \"$(git config pager.log)\"",
    ),
    case("EVIL0 cfg; git config core.sshCommand 'ssh -F./cfg'", "EVIL cfg", "./cfg"),
    // Remotes that are no settings, and addresses for which git runs a helper.
    case(
        "git config --global protocol.ext.allow always",
        "mkdir -p .git/branches .git/remotes; echo 'ext::touch @/victim/PWNED' > .git/branches/up; printf 'URL: ext::touch @/victim/PWNED\\n' > .git/remotes/origin",
        "git fetch up; git fetch origin; git fetch",
    ),
    case(
        "git config --global protocol.ext.allow always",
        "git init -q r; mkdir -p r/.git/remotes; printf 'URL: ext::touch @/victim/PWNED\\n' > r/.git/remotes/origin",
        "git -C r fetch origin",
    ),
    // A partial clone that is none: with an object missing git connects to where the command says.
    case(
        "",
        "git config remote.o.url ssh://example.invalid/x; git config remote.o.promisor true; git config extensions.partialClone o; \
         git config core.repositoryformatversion 1; t=$(git rev-parse HEAD^{tree}); rm -f .git/objects/${t:0:2}/${t:2}",
        "GIT_SSH_COMMAND='touch @/victim/PWNED;' git status",
    ),
    case(
        "git config remote.o.url ssh://example.invalid/x; git config remote.o.promisor true",
        "git config remote.o.url ssh://other.invalid/x",
        "git config remote.o.url | grep other && touch @/victim/PWNED",
    ),
];

#[tokio::test]
async fn git_of_the_user_runs_no_program_that_a_command_wrote() {
    let mut ran = Vec::new();
    for rung in RUNGS {
        for Case { before, plant, then } in CASES {
            let Some(world) = World::on(rung) else { break };
            let expand = |script: &str| {
                let script = script.replace("EVIL0", "plain").replace("EVIL", "evil");
                let define = "evil() { printf '#!/bin/sh\\ntouch @/victim/PWNED\\n' > $1; chmod +x $1; }; \
                              plain() { printf '#!/bin/sh\\ncat\\n' > $1; chmod +x $1; }; ";
                format!("{define}{script}").replace('@', world.place.path().to_str().unwrap())
            };
            world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
            world.outside(&expand(before));
            for part in plant.split("\nSECOND\n") {
                world.run(&expand(part)).await;
            }
            let said = world.outside(&expand(&format!("{{ {then}; }} < /dev/null")));
            if world.path("victim/PWNED").exists() {
                ran.push(format!("{}: {plant}: {then}: {said}", rung.name()));
            }
        }
    }
    assert!(ran.is_empty(), "{ran:#?}");
}

#[tokio::test]
async fn git_of_the_user_waits_for_nothing_that_a_command_made() {
    let mut waited = Vec::new();
    for rung in RUNGS {
        for (plant, then) in [
            ("mkfifo .gitignore", "git status"),
            ("mkfifo .gitattributes; echo b >> a", "git diff --stat"),
            ("mkfifo .mailmap", "git log --format=%aN"),
            ("mkfifo fifo; ln -s fifo .gitmodules", "git submodule status; git fetch --all"),
            ("mkdir -p sub; mkfifo sub/.gitignore; touch sub/b", "git status"),
            (
                "mkdir -p alt/pack alt/info; mkfifo alt/pack/multi-pack-index alt/info/commit-graph alt/info/alternates; \
                 echo ../../alt > .git/objects/info/alternates",
                "git status; git log",
            ),
            (
                "git init -q r; mkdir -p alt/pack alt/info; mkfifo alt/info/commit-graph alt/pack/multi-pack-index; \
                 git -C r commit -q --allow-empty -m x; echo ../../../alt > r/.git/objects/info/alternates",
                "git -C r status; git -C r log",
            ),
        ] {
            let Some(world) = World::on(rung) else { break };
            world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
            world.run(plant).await;
            let timed = format!("timeout 3 bash -c '{then}' < /dev/null > /dev/null 2>&1; echo $?");
            if world.outside(&timed) == "124\n" {
                waited.push(format!("{}: {plant}", rung.name()));
            }
        }
    }
    assert!(waited.is_empty(), "{waited:#?}");
}

#[tokio::test]
async fn other_directories_of_objects_may_be_those_of_repositories() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside("git init -q -b main r; cd r; echo a > a; git add a; git commit -qm x; cd ../../victim; git init -q o");
        let finished = world
            .run("git clone -q --shared r s; git clone -q --shared @/victim/o t 2>/dev/null; true")
            .await;
        assert_eq!(finished.report.denials, [], "{}", rung.name());
        assert_eq!(world.outside("git -C s log --format=%s; ls t/.git/objects/info"), "x\nalternates\n");
        // A change in the file itself.
        let finished = world.run("mkdir -p alt; echo @/ws/alt >> s/.git/objects/info/alternates").await;
        assert_eq!(finished.report.denials.len(), 1, "{}: {:?}", rung.name(), finished.report.denials);
    }
}

#[tokio::test]
async fn a_new_working_tree_keeps_programs_that_say_the_same() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        world.outside(
            "git init -q -b main .; mkdir .githooks t; echo 'exit 0' > .githooks/pre-commit; echo 'exit 0' > t/fs; git add .; \
             git commit -qm x; git config core.hooksPath .githooks; git config core.fsmonitor ./t/fs",
        );
        let finished = world.run("git worktree add -q wt 2>/dev/null").await;
        assert_eq!(finished.report.denials, [], "{}", rung.name());
        assert_eq!(
            world.outside("cat wt/.githooks/pre-commit wt/t/fs"),
            "exit 0\nexit 0\n",
            "{}",
            rung.name()
        );
    }
}

/// A setting that a command makes; true if it is kept afterwards.
const SETTINGS: &[(&str, &str, bool)] = &[
    ("core.repositoryformatversion", "99", false),
    ("core.bare", "true", false),
    ("core.filemode", "perhaps", false),
    ("extensions.refStorage", "files://x/y", false),
    ("extensions.objectFormat", "sha256", false),
    ("remote.o.url", "ext://x", false),
    ("remote.o.url", "https://example.invalid/x", true),
    ("remote.o.mirror", "true", true),
    ("rerere.enabled", "true", true),
    ("push.default", "current", true),
    ("push.default", "/bin/sh", false),
    ("push.autoSetupRemote", "true", true),
    ("merge.conflictStyle", "zdiff3", true),
    ("diff.algorithm", "histogram", true),
    ("diff.external", "sh", false),
    ("commit.verbose", "true", true),
    ("pull.rebase", "merges", true),
    ("pull.ff", "only", true),
];

#[tokio::test]
async fn settings_are_kept_by_their_values_and_the_rest_is_not_called_dangerous() {
    for rung in RUNGS {
        for (key, value, is_kept) in SETTINGS {
            let Some(world) = World::on(rung) else { break };
            world.outside("git init -q -b main .; echo a > a; git add a; git commit -qm x");
            let finished = world.run(&format!("git config {key} {value}")).await;
            let now = world.outside(&format!("git config {key}"));
            assert_eq!(now.trim() == *value, *is_kept, "{}: {key} {value}: {now}", rung.name());
            assert_eq!(finished.report.denials.is_empty(), *is_kept, "{}: {key} {value}", rung.name());
            assert!(!finished.report.denials.iter().any(|denial| denial.rule.contains("run programs")));
            assert_eq!(world.outside("git status -s"), "", "{}: {key} {value}", rung.name());
        }
    }
}

#[tokio::test]
async fn a_checkout_that_could_not_change_a_protected_file_is_told() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    world.outside(
        "git init -q -b main .; mkdir .vscode; echo 1 > .vscode/s; git add .; git commit -qm x; git checkout -q -b other; \
         echo 2 > .vscode/s; git commit -qam y; git checkout -q main",
    );
    let finished = world.run("git checkout -q other").await;
    let what: Vec<_> = finished.report.denials.iter().map(|denial| denial.what.clone()).collect();
    assert_eq!(what, [world.path("ws/.vscode/s").display().to_string()], "{:?}", finished.report.denials);
    assert!(finished.report.denials[0].rule.contains("run the git command yourself"));
    world.outside("git checkout -qf other");
    assert_eq!(world.run("git checkout -q -b third; git status -s").await.report.denials, []);
}
