//! `windlass instructions`: everything that the model is told at the start of a session.

use serde_json::{Value, json};
use windlass::{ContextSettings, instructions::InstructionDocument};

use super::{InstructionFiles, TOKEN_BYTES, fault_text};
use crate::{
    args::InstructionsOptions,
    exit::ProgramExit,
    note,
    output::{print, print_text},
    paths::PathDisplay,
    problem::CliProblem,
    setup::{InstructionsSource, ProgramSetup},
    table::{LastColumn, TextTable},
    trust::clean,
};

/// A text for the model.
struct InstructionPart {
    kind: &'static str,
    source: String,
    /// The bytes that the model gets.
    bytes: usize,
    remark: String,
}

impl InstructionPart {
    fn tokens(&self) -> usize {
        tokens(self.bytes)
    }
}

/// Estimates a number of tokens.
fn tokens(bytes: usize) -> usize {
    usize::try_from(TOKEN_BYTES).map_or(0, |per_token| bytes.div_ceil(per_token))
}

pub(super) fn run(setup: &ProgramSetup, options: &InstructionsOptions) -> Result<ProgramExit, CliProblem> {
    let files = InstructionFiles::of(setup);
    let context = setup.session_context(&files)?;
    let parts = parts(setup, &files, &context);
    if options.full {
        return print_text(&clean(&full_text(&context)));
    }
    if options.json {
        return print(&format!("{:#}\n", object(&files, &parts)));
    }
    let mut rows: Vec<_> = parts.iter().map(row).collect();
    let bytes: usize = parts.iter().map(|part| part.bytes).sum();
    rows.push(["total", &bytes.to_string(), &format!("~{}", tokens(bytes)), ""].map(str::to_owned));
    let table = TextTable {
        titles: ["TEXT", "BYTES", "TOKENS", "SOURCE"],
        expendable: &["BYTES"],
        last: LastColumn::Wrapped,
        rows,
    };
    print(&table.text())?;
    files.notes().iter().for_each(|text| note(&format!("note: {text}")));
    Ok(ProgramExit::Done)
}

fn row(part: &InstructionPart) -> [String; 4] {
    let source = [part.source.as_str(), part.remark.as_str()].join(" ");
    [part.kind.to_owned(), part.bytes.to_string(), format!("~{}", part.tokens()), source.trim().to_owned()]
}

fn parts(setup: &ProgramSetup, files: &InstructionFiles, context: &ContextSettings) -> Vec<InstructionPart> {
    let paths = PathDisplay::seen_from(&setup.cwd);
    let mut parts = vec![InstructionPart {
        kind: "standing",
        source: match setup.instructions_source() {
            InstructionsSource::BuiltIn(name) => format!("built in: {name}"),
            InstructionsSource::File(path) => paths.show(path),
        },
        bytes: context.instructions.as_ref().map_or(0, String::len),
        remark: String::new(),
    }];
    if let Some(text) = &context.developer_instructions {
        let (source, remark) = ("`developer_instructions`".to_owned(), String::new());
        parts.push(InstructionPart { kind: "developer", source, bytes: text.len(), remark });
    }
    parts.extend(files.documents.documents.iter().map(|document| InstructionPart {
        kind: "document",
        source: paths.show(&document.path),
        bytes: document.text.len(),
        remark: remark(document),
    }));
    parts.extend(files.skill_list(context.window).map(|list| InstructionPart {
        kind: "skills",
        source: windlass::counted(files.skills.skills.len() as u64, "skill"),
        bytes: list.text.len(),
        remark: match (list.omitted, list.shortened) {
            (0, 0) => String::new(),
            (0, shortened) => format!("({shortened} with a shortened description)"),
            (omitted, _) => format!("({omitted} do not fit)"),
        },
    }));
    parts
}

fn remark(document: &InstructionDocument) -> String {
    if document.is_cut { format!("(cut; the file has {} bytes)", document.file_bytes) } else { String::new() }
}

fn object(files: &InstructionFiles, parts: &[InstructionPart]) -> Value {
    let part = |part: &InstructionPart| {
        json!({
            "kind": part.kind,
            "source": part.source,
            "bytes": part.bytes,
            "tokens": part.tokens(),
            "remark": part.remark,
        })
    };
    let left_out = files.faults().map(fault_text).chain(files.left_out.problem.clone());
    json!({
        "parts": parts.iter().map(part).collect::<Vec<_>>(),
        "left_out": left_out.chain(files.trust_note()).map(|text| clean(&text)).collect::<Vec<_>>(),
    })
}

/// Returns the texts as they are sent, with a line before each.
fn full_text(context: &ContextSettings) -> String {
    let standing = context.instructions.clone().unwrap_or_default();
    let developer = context.developer_instructions.iter().map(|text| ("developer", text));
    let opening = context.opening_messages.iter().map(|text| ("user", text));
    let parts = [("instructions", &standing)].into_iter().chain(developer).chain(opening);
    parts.map(|(role, text)| format!("--- {role} ---\n{}\n\n", text.trim_end())).collect()
}
