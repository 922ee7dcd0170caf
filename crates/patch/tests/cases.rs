//! Runs every directory of `tests/cases`: `input/` (may be absent) and `patch.txt` must give
//! `expected/`, byte for byte. A case with `error.txt` must fail with that text and change nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use windlass_patch::{ApplyError, FileOperation, Text, apply, parse};

type Tree = BTreeMap<String, Vec<u8>>;

#[test]
fn every_case_gives_what_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<PathBuf> = entries(&folder).into_iter().filter(|path| path.is_dir()).collect();
    cases.sort();
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|case| run(case).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(case: &Path) -> Result<(), String> {
    let name = case.display();
    let input = tree(&case.join("input"));
    let text = fs::read_to_string(case.join("patch.txt")).map_err(|error| format!("{name}: {error}"))?;
    let (files, error) = match changed(&input, &text) {
        Ok(files) => (files, String::new()),
        Err(error) => (input, error),
    };
    let wanted = fs::read_to_string(case.join("error.txt")).unwrap_or_default();
    if error.trim_end() != wanted.trim_end() {
        return Err(format!("{name}: it said\n{error}\nand should have said\n{wanted}"));
    }
    let expected = tree(&case.join("expected"));
    if files != expected {
        return Err(format!(
            "{name}: it gave\n{}\nand should have given\n{}",
            shown(&files),
            shown(&expected)
        ));
    }
    Ok(())
}

/// Returns the files after a patch. Either all operations are applied or none.
fn changed(input: &Tree, patch: &str) -> Result<Tree, String> {
    let patch = parse(patch).map_err(|error| error.for_terminal())?;
    if patch.operations.is_empty() {
        return Err("No files were modified.".into());
    }
    let mut files = input.clone();
    for operation in &patch.operations {
        match operation {
            FileOperation::Add { path, content, must_be_new } => {
                let before = files.insert(path.as_ref().into(), content.clone().into());
                if *must_be_new && before.is_some() {
                    return Err(format!(
                        "Failed to write file {path}: it already exists, and the diff creates it"
                    ));
                }
            }
            FileOperation::Delete { path, removes } => {
                let bytes =
                    files.remove(path.as_ref()).ok_or_else(|| format!("Failed to delete file {path}"))?;
                let text = Text::decode(&bytes).map_err(|error| format!("Failed to read {path}: {error}"))?;
                let is_whole = removes
                    .as_ref()
                    .is_none_or(|chunks| apply(&text, chunks).is_ok_and(|applied| applied.bytes.is_empty()));
                if !is_whole {
                    return Err(format!(
                        "Failed to delete file {path}: it has more lines than the diff removes"
                    ));
                }
            }
            FileOperation::Update { path, move_to, chunks } => {
                let bytes = files
                    .remove(path.as_ref())
                    .ok_or_else(|| format!("Failed to read file to update {path}"))?;
                let text = Text::decode(&bytes).map_err(|error| format!("Failed to read {path}: {error}"))?;
                let applied = apply(&text, chunks).map_err(|error| match error {
                    ApplyError::Miss(miss) => miss.describe(path),
                    other => other.to_string(),
                })?;
                files.insert(move_to.as_ref().unwrap_or(path).as_ref().into(), applied.bytes);
            }
        }
    }
    Ok(files)
}

fn tree(root: &Path) -> Tree {
    let mut files = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

fn shown(tree: &Tree) -> String {
    tree.iter().map(|(name, bytes)| format!("{name}: {}\n", bytes.escape_ascii())).collect()
}
