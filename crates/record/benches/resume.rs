//! Measures the time to open a long session, by what the program reads for it: `cargo bench -p
//! windlass-record --bench resume [-- MEGABYTES]`.
//!
//! A list of sessions summarizes it, the screen shows the end of its conversation (`load`), the
//! agent resumes it, and at the end its edits are listed with their turns.

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write},
    time::Instant,
};

use windlass_contract::{
    Effects, Input, Item, Journal, Outcome, ToolCall, Verdict,
    edit::{Archive, EditRecord},
    item::{Body, Raw, Role},
    journal::{Intent, Record, SessionMeta},
};
use windlass_fakes::clean;
use windlass_record::{
    DurabilityMode, Edits, SessionError, SessionFile, Which, load, new_thread_id, summarize,
};

/// Size of each output: that of a command that prints 500 lines.
const OUTPUT_BYTES: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes = env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(100_u64);
    let home = tempfile::tempdir()?;
    let meta = SessionMeta {
        id: new_thread_id(),
        cwd: "/".into(),
        version: "0".into(),
        instructions: "x".repeat(10_000),
        parent: None,
    };
    let file = SessionFile::create(home.path(), &meta)?.with_durability(DurabilityMode::Never);
    let path = file.path().to_owned();
    let mut number = 0_u32;
    while fs::metadata(&path)?.len() < megabytes * 1_000_000 {
        write_call(&file, number)?;
        number += 1;
    }
    drop(file);
    let (bytes, before) = (fs::metadata(&path)?.len(), peak_kilobytes()?);
    let edits = Edits::of_session(home.path(), &meta.id)?;
    edits.log(&EditRecord { transaction: "t", call: &"call_0".into(), files: &[], kept: &[] })?;
    let timed = |name: &str, read: &dyn Fn() -> Result<usize, SessionError>| -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        let found = read()?;
        writeln!(io::stdout(), "{name}: {:.1?}, {found} found", start.elapsed())?;
        Ok(())
    };
    timed("summarize", &|| Ok(usize::try_from(summarize(&path)?.calls).unwrap_or(usize::MAX)))?;
    timed("list edits", &|| Ok(edits.list()?.len()))?;
    timed("load", &|| Ok(load(&path)?.history.len()))?;
    let start = Instant::now();
    let (_file, session) = SessionFile::resume(home.path(), &Which::Id(meta.id))?;
    let took = start.elapsed();
    let peak = peak_kilobytes()?;
    writeln!(
        io::stdout(),
        "resume {bytes} bytes, {} items: {took:.1?}, peak {} kB ({before} kB before)",
        session.history.len(),
        peak
    )?;
    Ok(())
}

fn write_call(file: &SessionFile, number: u32) -> Result<(), Box<dyn Error>> {
    let id = format!("call_{number}");
    let arguments = format!("{{\"command\":\"seq {number}\"}}");
    let raw = serde_json::json!({
        "type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "shell_command",
        "arguments": arguments, "status": "completed",
    });
    let call =
        ToolCall { id: id.as_str().into(), name: "shell_command".into(), input: Input::Json(arguments) };
    let intent = Intent {
        call: call.id.clone(),
        tool: call.name.clone(),
        effects: Effects::unknown(),
        decision: "the sandbox mode is `workspace-write`".into(),
    };
    let calls = [call.id.clone()];
    let json = serde_json::value::to_raw_value(&raw)?;
    let item = Item { body: Body::Call(call), raw: Some(Raw { wire: "responses".into(), json }) };
    let line = format!("{number}: the quick brown fox said \"hello\"\n");
    let outcome = Outcome::plain(Verdict::success(), line.repeat(OUTPUT_BYTES / line.len()));
    file.append(&Record::Item(clean(&Item::message(Role::Assistant, "One more."))))?;
    file.append(&Record::Item(clean(&item)))?;
    file.append(&Record::Intent(clean(&intent)))?;
    file.append(&Record::Outcome { call: &calls[0], outcome: clean(&outcome) })?;
    file.append(&Record::Outputs { calls: &calls })?;
    Ok(())
}

fn peak_kilobytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
