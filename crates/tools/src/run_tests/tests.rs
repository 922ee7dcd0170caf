//! Projects in memory, and what is run for them.

use windlass_contract::host::{Exit, HostError};

use super::*;
use crate::fakes::{ToolHarness, finished};

/// Returns the command that a call becomes after the project is inspected.
async fn planned(files: &[(&str, &str)], input: &str) -> Result<PlannedTestRun, ToolError> {
    let desk = ToolHarness::with_drawer(files);
    let args = Input::Json(input.to_owned()).parse(&NAME.into())?;
    TestProjectLook { tool: Arc::default(), args }.planned(&desk.cx).await
}

async fn line(files: &[(&str, &str)], input: &str) -> String {
    let planned = planned(files, input).await.unwrap();
    let effects = planned.effects();
    let command = effects.command.unwrap();
    let at = command.cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
    format!("{}{at}", command.display())
}

#[tokio::test]
async fn every_kind_of_project_has_its_runner() {
    let vitest = r#"{"scripts":{"test":"vitest run"},"devDependencies":{"vitest":"4"}}"#;
    let jest = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"},"devDependencies":{"jest":"30"}}"#;
    let other = r#"{"scripts":{"test":"tape test/*.js"}}"#;
    for (files, expected) in [
        (&[("Cargo.toml", "")][..], "cargo test --no-fail-fast"),
        (&[("Cargo.toml", ""), (".config/nextest.toml", "")], "cargo nextest run --no-fail-fast"),
        (
            &[("pyproject.toml", "[tool.pytest.ini_options]")],
            "python3 -m pytest -q --tb=short -rfE --durations=5",
        ),
        (
            &[("tests/conftest.py", ""), (".venv/bin/python", "")],
            "./.venv/bin/python -m pytest -q --tb=short -rfE --durations=5",
        ),
        (&[("tests/test_a.py", "")], "python3 -m unittest discover -v -s tests"),
        (&[("tests/test_a.py", ""), ("tests/__init__.py", "")], "python3 -m unittest discover -v"),
        (&[("go.mod", "")], "go test -json ./..."),
        (
            &[("package.json", vitest), ("node_modules/.bin/vitest", "")],
            "./node_modules/.bin/vitest run --reporter=json",
        ),
        (&[("package.json", jest)], "npx --no-install jest --json"),
        (&[("package.json", other)], "npm test"),
        (&[("package.json", r#"{"scripts":{"test":"node --test"}}"#)], "node --test --test-reporter=tap"),
        (&[("pom.xml", ""), ("mvnw", "")], "./mvnw -B test"),
        (&[("build.gradle.kts", "")], "gradle test --console=plain --continue"),
        (
            &[("CMakeLists.txt", ""), ("build/CTestTestfile.cmake", "")],
            "ctest --output-on-failure --test-dir build",
        ),
        (&[("Makefile", "all:\n\ttrue\ntest: all\n\t./t\n")], "make test"),
    ] {
        assert_eq!(line(files, "{}").await, expected);
    }
}

#[tokio::test]
async fn a_path_leads_to_its_project_and_a_filter_to_its_tests() {
    let files = [("Cargo.toml", ""), ("web/go.mod", ""), ("web/a/b_test.go", ""), ("tests/shop.rs", "")];
    assert_eq!(line(&files, r#"{"path":"web"}"#).await, "go test -json ./... in web");
    assert_eq!(
        line(&files, r#"{"path":"web/a/b_test.go","filter":"Adds"}"#).await,
        "go test -json -run Adds ./a/... in web"
    );
    assert_eq!(line(&files, r#"{"path":"tests/shop.rs"}"#).await, "cargo test --no-fail-fast --test shop");
    assert_eq!(line(&files, r#"{"path":"./web/","filter":"x"}"#).await, "go test -json -run x ./... in web");
    let python = [("pytest.ini", ""), ("tests/test_a.py", "")];
    assert_eq!(
        line(&python, r#"{"path":"tests/test_a.py","filter":"adds"}"#).await,
        "python3 -m pytest -q --tb=short -rfE --durations=5 tests/test_a.py -k adds"
    );
}

#[tokio::test]
async fn a_file_that_only_looks_like_a_test_does_not_hide_the_project_above() {
    let python = [("pyproject.toml", "pytest"), ("tests/test_a.py", "")];
    let pytest = "python3 -m pytest -q --tb=short -rfE --durations=5";
    assert_eq!(line(&python, r#"{"path":"tests"}"#).await, format!("{pytest} tests"));
    let apart = [("pyproject.toml", "pytest"), ("b/.git/config", ""), ("b/test_a.py", "")];
    assert_eq!(line(&apart, r#"{"path":"b"}"#).await, "python3 -m unittest discover -v in b");
}

#[tokio::test]
async fn where_several_fit_the_choice_is_told_and_can_be_changed() {
    let files = [("Cargo.toml", ""), ("Makefile", "test:\n")];
    let first = planned(&files, "{}").await.unwrap();
    assert_eq!(
        first.explanation,
        "chosen by Cargo.toml; there is also make (Makefile): set `runner` for another"
    );
    assert_eq!(line(&files, r#"{"runner":"make"}"#).await, "make test");
    let problem =
        async |files: &[(&str, &str)], input: &str| planned(files, input).await.err().unwrap().message;
    assert!(
        problem(&files, r#"{"runner":"pytest"}"#)
            .await
            .starts_with("found nothing that asks for pytest in `.`")
    );
    assert!(
        problem(&[("README.md", "")], "{}")
            .await
            .starts_with("found nothing that says how its tests are run")
    );
    assert_eq!(
        problem(&files, r#"{"path":"nowhere"}"#).await,
        "cannot look at `nowhere`: `nowhere` does not exist"
    );
}

#[tokio::test]
async fn what_failed_can_be_run_again_alone() {
    let tool = Arc::new(RunTests::default());
    let printed = b"test a::b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let call = async |input: &str, exit: Exit, printed: &[u8]| {
        let desk = ToolHarness::new(&[], Ok(finished(exit, printed))).holding(&[("Cargo.toml", "")]);
        let output = desk.call(Arc::clone(&tool) as Arc<dyn AnyTool>, input).await;
        (output.map_err(|error| error.message), desk.asked().pop().map(|command| command.argv.join(" ")))
    };
    let again = r#"{"only_failed":true}"#;
    let (early, _) = call(again, Exit::Code(0), b"").await;
    assert!(early.unwrap_err().starts_with("the tests have not been run yet"));
    let (first, _) = call("{}", Exit::Code(101), printed).await;
    let explanation = "$ cargo test --no-fail-fast\n(chosen by Cargo.toml)";
    assert_eq!(first.unwrap().content[0], Content::Text(explanation.into()));
    let passed = b"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let (_, asked) = call(again, Exit::Code(0), passed).await;
    assert_eq!(asked.unwrap(), "cargo test --no-fail-fast -- --exact a::b");
    let (late, _) = call(again, Exit::Code(0), b"").await;
    assert!(late.unwrap_err().starts_with("nothing failed when the tests were last run"));
}

#[tokio::test]
async fn what_failed_is_narrowed_by_the_filter() {
    let printed = b"test a::b ... FAILED\ntest a::c ... FAILED\ntest result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let tool = Arc::new(RunTests::default());
    let call = async |input: &str| {
        let desk =
            ToolHarness::new(&[], Ok(finished(Exit::Code(101), printed))).holding(&[("Cargo.toml", "")]);
        let output = desk.call(Arc::clone(&tool) as Arc<dyn AnyTool>, input).await;
        (output.map_err(|error| error.message), desk.asked().pop().map(|command| command.argv.join(" ")))
    };
    call("{}").await.0.unwrap();
    let (_, asked) = call(r#"{"only_failed":true,"filter":"c"}"#).await;
    assert_eq!(asked.unwrap(), "cargo test --no-fail-fast -- --exact a::c");
    let (none, _) = call(r#"{"only_failed":true,"filter":"x"}"#).await;
    assert_eq!(none.unwrap_err(), "none of the tests that failed has `x` in its name: a::b, a::c");
}

#[tokio::test]
async fn what_a_runner_writes_into_files_is_read_unless_it_is_from_earlier() {
    let report = |name: &str| {
        format!(
            r#"<testsuite><testcase classname="A" name="{name}"><failure message="why"/></testcase></testsuite>"#
        )
    };
    let (old, new, part) = (report("old"), report("new"), report("part"));
    let project = [("build.gradle", ""), ("build/test-results/test/TEST-A.xml", &*old)];
    let written = [
        ("build/test-results/test/TEST-B.xml", &*new),
        ("part/build/test-results/slow/TEST-C.xml", &*part),
        ("build/test-results/test/other.xml", &*new),
    ];
    let names = async |exit| {
        let desk = ToolHarness::new(&[], Ok(finished(exit, b""))).holding(&project).writing(&written);
        let data = desk.call(run_tests(), "{}").await.unwrap().data;
        let Some(ToolReport::Tests(report)) = data else { panic!("{data:?}") };
        report.failures.into_iter().map(|failure| failure.name).collect::<Vec<_>>()
    };
    assert_eq!(names(Exit::Code(1)).await, ["A.new", "A.part"]);
    assert_eq!(names(Exit::Code(0)).await, ["A.old", "A.new", "A.part"], "Gradle ran only what had changed");
    let desk = ToolHarness::new(&[], Ok(finished(Exit::Code(1), b""))).holding(&project);
    assert_eq!(desk.call(run_tests(), "{}").await.unwrap().data, None);
}

#[tokio::test]
async fn a_runner_that_is_not_there_is_told_with_the_file_that_asked_for_it() {
    let source = std::io::ErrorKind::NotFound.into();
    let missing = HostError::Spawn { program: "go".into(), source };
    let desk = ToolHarness::new(&[], Err(missing)).holding(&[("go.mod", "")]);
    let error = desk.call(run_tests(), "{}").await.unwrap_err();
    assert!(
        error.message.contains("program `go` was not found")
            && error.message.ends_with("(go chosen by go.mod)")
    );
    let option = desk.call(run_tests(), r#"{"filter":"--config=x"}"#).await.unwrap_err();
    assert!(option.message.starts_with("`filter` is a part of a test's name"));
}
