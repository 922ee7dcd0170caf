//! Advice about the sandbox in plan mode: another mode of the sandbox does not help there.

use windlass_contract::{Content, Denial, Output, outcome::Facts};

const REMEDY: &str = "approve the plan, or end plan mode with `/plan`";

/// Replaces the options that would allow what the sandbox blocked, in the facts and in the text.
pub(crate) fn with_its_remedy(mut output: Output) -> Output {
    let denials = match &mut output.facts {
        Facts::None | Facts::Remote(_) => return output,
        Facts::Command(command) => &mut command.denials,
        Facts::Session(session) => &mut session.report.denials,
    };
    for denial in denials.iter_mut().filter(|denial| !denial.remedy.is_empty()) {
        let before = denial.advice();
        REMEDY.clone_into(&mut denial.remedy);
        replace_line(&mut output.content, before, denial);
    }
    output
}

fn replace_line(content: &mut [Content], before: Option<String>, denial: &Denial) {
    let Some((before, after)) = before.zip(denial.advice()) else { return };
    for part in content {
        if let Content::Text(text) = part
            && text.lines().any(|line| line == before)
        {
            *text = text.replacen(&before, &after, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{
        Effects,
        host::{Exit, Layer, Proof},
        report::ProcessReport,
    };

    use super::*;

    #[test]
    fn no_other_mode_of_the_sandbox_is_proposed() {
        let denial = Denial {
            layer: Layer::Files,
            what: "/w/made".to_owned(),
            rule: "nothing may be written here".to_owned(),
            need: Effects::none(),
            proof: Proof::Verified,
            remedy: "`-s workspace-write`".to_owned(),
        };
        let text = format!("{}\ntouch: cannot touch 'made'\n", denial.advice().unwrap());
        let report = ProcessReport { denials: vec![denial], ..ProcessReport::new(Exit::Code(1)) };
        let output = with_its_remedy(Output {
            content: vec![Content::Text(text)],
            facts: Facts::Command(Box::new(report)),
            ..Output::default()
        });
        assert_eq!(output.facts.denials()[0].remedy, REMEDY);
        assert_eq!(
            Content::join(&output.content),
            "sandbox: nothing may be written here: /w/made; to allow it: approve the plan, or end plan mode with \
             `/plan`\ntouch: cannot touch 'made'\n"
        );
    }
}
