//! Pictures for the README: sessions of the program in a pseudo-terminal, drawn as SVG.
//!
//! `cargo xtask pictures` builds the program, plays each scene with a scripted model, and writes
//! `docs/pictures/*.svg`.

mod scenes;
mod svg;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use scenes::{PictureScene, SceneStep};

use crate::{recorder::TerminalRecorder, scratch::ScratchDirectory};

/// Plays all scenes and writes their pictures.
pub(crate) fn run(root: &Path) -> Result<String, Vec<String>> {
    let program = build(root)?;
    let directory = root.join("docs/pictures");
    fs::create_dir_all(&directory).map_err(|error| vec![format!("docs/pictures: {error}")])?;
    let mut written = Vec::new();
    for scene in scenes::all() {
        let picture = play(&program, &scene).map_err(|error| vec![format!("{}: {error}", scene.name)])?;
        let file = directory.join(format!("{}.svg", scene.name));
        fs::write(&file, picture).map_err(|error| vec![format!("{}: {error}", file.display())])?;
        written.push(format!("docs/pictures/{}.svg", scene.name));
    }
    Ok(written.join("\n"))
}

/// Builds the program and returns its path, which only cargo knows.
fn build(root: &Path) -> Result<PathBuf, Vec<String>> {
    let failed = |error: String| vec![format!("cannot build the program: {error}")];
    let arguments = ["build", "--package", "windlass-cli", "--message-format", "json-render-diagnostics"];
    let output = Command::new("cargo").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut program = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    program.next_back().ok_or_else(|| failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Plays one scene in an empty project and returns the last screen as SVG.
fn play(program: &Path, scene: &PictureScene) -> io::Result<String> {
    let directory = ScratchDirectory::create(&format!("picture-{}", scene.name))?;
    let project = directory.path().join("shop");
    for (name, text) in scenes::FILES {
        let file = project.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&project))?;
        fs::write(file, text)?;
    }
    let git = Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(&project).status()?;
    if !git.success() {
        return Err(io::Error::other("`git init` failed"));
    }
    let script = directory.path().join("script.json");
    fs::write(&script, scene.script.to_string())?;
    let mut command = Command::new(program);
    command.arg("chat").arg("--script").arg(&script).args(scene.options).current_dir(&project);
    command.env("WINDLASS_HOME", directory.path().join("home")).env("HOME", directory.path());
    let mut recorder = TerminalRecorder::start(&command, scene.size)?;
    for step in scene.steps {
        match step {
            SceneStep::Wait(text) => recorder.wait_for(text)?,
            SceneStep::Type(keys) => recorder.type_in(keys)?,
            SceneStep::Read => std::thread::sleep(scenes::READING_TIME),
        }
    }
    Ok(svg::draw(scene.title, &recorder.screen()))
}
