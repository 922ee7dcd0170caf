//! Insights from the output of real programs: `tests/outputs/NAME/output.txt` and the
//! `insight.json` beside it.

use std::{fs, path::Path};

use serde_json::Value;
use windlass_contract::{
    Output,
    host::Exit,
    meta::Format,
    outcome::{Facts, Receipt},
    report::ProcessReport,
    verdict::Criteria,
};
use windlass_shape::Shaper;

fn understood(output: &str, code: i32) -> Value {
    let facts = Facts::Command(Box::new(ProcessReport::new(Exit::Code(code))));
    let output = Output { facts, ..Output::from(output) };
    let outcome =
        Shaper::default().shape(Format::Plain, &Criteria::default(), Ok(output), Receipt::default());
    serde_json::to_value(&outcome.insight).unwrap_or_default()
}

#[test]
fn what_programs_print_is_understood() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs");
    let mut wrong = Vec::new();
    for case in fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let output = fs::read_to_string(case.join("output.txt")).unwrap();
        let insight = understood(&output, i32::from(!name.ends_with("-ok")));
        let file = case.join("insight.json");
        if std::env::var_os("UPDATE_INSIGHTS").is_some() {
            fs::write(&file, format!("{insight:#}\n")).unwrap();
        }
        let expected: Value =
            serde_json::from_str(&fs::read_to_string(&file).unwrap_or_default()).unwrap_or_default();
        if insight != expected {
            wrong.push(format!("{name}: {insight:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
