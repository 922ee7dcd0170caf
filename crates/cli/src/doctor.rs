//! `windlass doctor`: what this machine can enforce.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass::host::{Diagnosis, Machine};

use crate::{args::Common, exit::Exit, output::print, problem::Problem, setup::Setup};

/// Runs the command. It fails if commands cannot be held at all.
pub(crate) fn run(common: &Common, json: bool) -> Result<Exit, Problem> {
    let diagnosis = Machine::for_one_command(BTreeMap::new()).diagnose();
    // A configuration with a mistake is for `windlass config` to tell of.
    let left_out = Setup::for_tools(common).map(|setup| setup.left_out()).unwrap_or_default();
    let shown = if json {
        let mut value = value(&diagnosis);
        value["variables_left_out"] = left_out.into_iter().collect();
        format!("{value:#}\n")
    } else {
        as_text(&diagnosis) + &variables(&left_out)
    };
    print(&shown)?;
    Ok(if diagnosis.rung.is_some() { Exit::Done } else { Exit::Failed })
}

/// The same as part of a larger report.
pub(crate) fn report() -> Value {
    value(&Machine::for_one_command(BTreeMap::new()).diagnose())
}

/// The variables that commands are not given, grouped by the reason.
fn variables(left_out: &[(String, String)]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, reason) in left_out {
        by_reason.entry(reason).or_default().push(name);
    }
    let lines = by_reason.iter().map(|(reason, names)| format!("  {} ({reason})\n", names.join(", ")));
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nvariables that commands are not given (`shell_environment_policy`):\n{lines}")
}

fn value(diagnosis: &Diagnosis) -> Value {
    let layers: BTreeMap<_, _> = diagnosis.layers.iter().cloned().collect();
    let missing = diagnosis.missing.as_ref();
    json!({
        "rung": diagnosis.rung,
        "landlock": diagnosis.landlock,
        "layers": layers,
        "missing": missing.map(|missing| json!({"reason": missing.reason, "remedy": missing.remedy})),
        "not_covered": diagnosis.not_covered,
    })
}

fn as_text(diagnosis: &Diagnosis) -> String {
    let rung = diagnosis.rung.map_or("nothing: commands are refused", windlass::Rung::name);
    let mut text = format!("commands are held by: {rung}\n");
    if let Some(missing) = &diagnosis.missing {
        text.push_str(&format!("\nno namespaces: {}\n", missing.reason));
        let remedy =
            missing.remedy.as_deref().unwrap_or("no remedy is known; the reason is the system's own");
        text.push_str(&format!("what helps: {remedy}\n"));
    }
    if !diagnosis.layers.is_empty() {
        text.push_str("\nwhat each layer does:\n");
        for (name, what) in &diagnosis.layers {
            text.push_str(&format!("  {name}: {what}\n"));
        }
    }
    text.push_str("\nnot covered:\n");
    diagnosis.not_covered.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

#[cfg(test)]
mod tests {
    use windlass::host::Missing;

    use super::*;

    #[test]
    fn variables_that_are_left_out_are_told_with_the_reason() {
        let pair = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
        let left_out = [pair("A", "r"), pair("B", "s"), pair("C", "r")];
        assert_eq!(
            variables(&left_out),
            "\nvariables that commands are not given (`shell_environment_policy`):\n  A, C (r)\n  B (s)\n"
        );
        assert_eq!(variables(&[]), "");
    }

    #[test]
    fn a_missing_rung_is_told_with_what_helps() {
        let diagnosis = Diagnosis {
            rung: None,
            landlock: 0,
            missing: Some(Missing {
                reason: "making namespaces: no".to_owned(),
                remedy: Some("do this".to_owned()),
            }),
            layers: Vec::new(),
            not_covered: vec!["everything".to_owned()],
        };
        assert_eq!(
            as_text(&diagnosis),
            "commands are held by: nothing: commands are refused\n\nno namespaces: making namespaces: no\n\
             what helps: do this\n\nnot covered:\n  everything\n"
        );
    }
}
