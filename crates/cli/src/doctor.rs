//! `windlass doctor`: what this machine can enforce.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass::host::{Diagnosis, Machine};

use crate::{exit::Exit, output::print, problem::Problem};

/// Runs the command. It fails if commands cannot be held at all.
pub(crate) fn run(json: bool) -> Result<Exit, Problem> {
    let diagnosis = Machine::for_one_command(BTreeMap::new()).diagnose();
    let shown = if json { as_json(&diagnosis) } else { as_text(&diagnosis) };
    print(&shown)?;
    Ok(if diagnosis.rung.is_some() { Exit::Done } else { Exit::Failed })
}

/// The same as part of a larger report.
pub(crate) fn report() -> Value {
    value(&Machine::for_one_command(BTreeMap::new()).diagnose())
}

fn as_json(diagnosis: &Diagnosis) -> String {
    format!("{:#}\n", value(diagnosis))
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
