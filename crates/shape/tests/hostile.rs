//! Whatever is printed, understanding it ends well: no panic, the same twice, and soon.

use proptest::prelude::*;
use windlass_contract::{
    Output,
    host::Exit,
    insight::Insight,
    meta::Format,
    outcome::{Facts, Receipt},
    report::ProcessReport,
    verdict::Criteria,
};
use windlass_shape::Shaper;

fn understood(text: &str) -> Option<Insight> {
    let facts = Facts::Command(Box::new(ProcessReport::new(Exit::Code(1))));
    let output = Output { facts, ..Output::from(text) };
    let outcome =
        Shaper::default().shape(Format::Tests, &Criteria::default(), Ok(output), Receipt::default());
    outcome.into_inner().insight
}

/// Lines that readers care about, and pieces of them.
const LINES: [&str; 48] = [
    "test result: ok. 18446744073709551615 passed; 4294967295 failed; 0 ignored; finished in 1e19s",
    "Tests:  4294967295 passed, 18446744073709551615 total",
    "Time:   9e18 m",
    "Tests run: 4294967295, Failures: 4294967295, Errors: 18446744073709551615, Skipped: 1",
    "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.90s",
    "test a ... FAILED",
    "---- a stdout ----",
    "thread 'a' panicked at src/lib.rs:22:9:",
    "thread 'a' panicked at 'x', a.rs:1:1",
    "failures:",
    "        FAIL [   0.140s] (2/4) till::shop closes",
    "     Summary [   1.775s] 4 tests run: 1 passed (1 slow, 2 leaky), 3 failed, 1 skipped",
    "=== short test summary info ===",
    "FAILED tests/a.py::b - assert",
    "____ test_a ____",
    "__é__",
    "E   assert 1",
    "=== 4 failed, 2 passed in 0.50s ===",
    "0.03s call     tests/a.py::b",
    "=== slowest 5 durations ===",
    "ERROR: test_a (t.Shop.test_a)",
    "Ran 5 tests in 0.001s",
    "FAILED (failures=2, errors=1, skipped=1)",
    "--- FAIL: TestA/b (0.00s)",
    "FAIL\tpkg\t0.1s",
    r#"{"Time":"x","Action":"fail","Package":"p","Test":"T","Elapsed":1e300}"#,
    r#"{"Action":"fail","Package":"p","Elapsed":-1}"#,
    "  ● a › b",
    "Tests:       2 failed, 1 skipped, 2 passed, 5 total",
    r#"{"numPassedTests":1,"numFailedTests":1,"numPendingTests":0,"testResults":[{"name":"é","assertionResults":[]}]}"#,
    " FAIL  v/a.mjs > b",
    "      Tests  2 failed | 1 passed (3)",
    "  1 passing (23ms)",
    "  1) a",
    r#"["fail",{"fullTitle":"é","duration":1}]"#,
    r#"["é"#,
    "not ok 2 - é # SKIP",
    "1..4",
    "ℹ duration_ms 1",
    "[ERROR] Tests run: 4, Failures: 9, Errors: 1, Skipped: 1",
    "4 tests completed, 9 failed",
    "2/3 Test #2: é ...***Failed    0.01 sec",
    "error[E0308]: é",
    " --> é.rs:1:1",
    "Traceback (most recent call last):",
    "  File \"é.py\", line 3, in f",
    "é.c:1:2: error: x [-W]",
    "é.ts(1,2): error TS1: x",
];

proptest! {
    #[test]
    fn anything_is_understood_somehow_and_the_same_way_twice(
        lines in prop::collection::vec(prop_oneof![
            prop::sample::select(&LINES[..]).prop_map(str::to_owned),
            (prop::sample::select(&LINES[..]), 0usize..60).prop_map(|(line, at)| line.chars().take(at).collect()),
            ".{0,40}",
        ], 0..60),
    ) {
        let text = lines.join("\n");
        let insight = understood(&text);
        prop_assert!(insight.as_ref().is_some_and(|insight| !insight.summary.contains('\n')));
        prop_assert_eq!(insight, understood(&text));
    }
}

/// Long texts made of one line, or of one line without end. A reader that is not linear would not
/// be done today.
#[test]
fn no_line_makes_a_reader_slow() {
    for line in LINES {
        for end in ["\n", " "] {
            understood(&format!("{line}{end}").repeat(200_000 / line.len()));
        }
    }
}

#[test]
fn numbers_that_cannot_be_are_no_reason_to_fall_over() {
    for line in &LINES[..4] {
        understood(&format!("{line}\n{line}\n"));
    }
    understood("Tests:       1 passed, 1 total\nTime:        9e18 m\n");
}
