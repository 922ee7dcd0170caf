//! Measures the time and space to index calls: `cargo bench -p windlass-record --bench calls`.

use std::{
    error::Error,
    fs,
    io::{self, Write},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use windlass_contract::{
    Effects, Input, Journal, Outcome, Output, ToolCall, Verdict,
    host::Exit,
    item::Body,
    journal::{Intent, Record, SessionMeta},
    meta::Format,
    outcome::{Facts, Receipt},
    report::ProcessReport,
    verdict::Criteria,
};
use windlass_fakes::clean;
use windlass_record::{CallGrouping, Calls, IndexedSession, Keep, SessionFile, new_thread_id};
use windlass_shape::Shaper;

const CALLS: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let mut out = io::stdout();
    let meta = || SessionMeta {
        id: new_thread_id(),
        cwd: "/".into(),
        version: "0".into(),
        instructions: "x".repeat(10_000),
        parent: None,
    };

    let plain = SessionFile::create(home.path(), &meta())?;
    let written = per_call(&plain)?;
    let path = plain.path().to_owned();
    drop(plain);

    let start = Instant::now();
    let mut calls = Calls::open(home.path(), Keep::default())?;
    let opened = start.elapsed();
    let start = Instant::now();
    calls.catch_up()?;
    let read = start.elapsed() / CALLS;
    let index = fs::metadata(Calls::index_path(home.path()))?.len() + fs::metadata(wal(home.path()))?.len();
    let journal = fs::metadata(&path)?.len();
    writeln!(out, "written down, per call:           {written:>9.1?}")?;
    let both = judged(&SessionFile::create(&home.path().join("judged"), &meta())?)?;
    writeln!(out, "cleaned, judged and written down: {both:>9.1?}")?;
    writeln!(out, "index made and opened:            {opened:>9.1?}")?;
    writeln!(out, "read into the index, per call:    {read:>9.1?}, on nobody's time")?;
    writeln!(out, "{CALLS} calls: session file {journal} bytes, index with its log {index} bytes")?;

    let start = Instant::now();
    calls.stats(CallGrouping::Tool, None, Timestamp::now())?;
    let stats = start.elapsed();
    let start = Instant::now();
    calls.tool_reliability(Timestamp::now())?;
    writeln!(out, "stats of {CALLS}:  {stats:>9.1?}; standings {:>9.1?}", start.elapsed())?;
    drop(calls);

    let start = Instant::now();
    let mut calls = Calls::open(home.path(), Keep::default())?;
    calls.catch_up()?;
    writeln!(out, "opened again with nothing new:    {:>9.1?}", start.elapsed())?;

    let followed = SessionFile::create(home.path(), &meta())?;
    let followed =
        IndexedSession::new(followed, home.path(), Keep::default(), Box::new(|trouble| panic!("{trouble}")));
    let written = per_call(&followed)?;
    let start = Instant::now();
    drop(followed);
    writeln!(
        out,
        "written down and followed, per call: {written:>6.1?}; the end waits {:.1?}",
        start.elapsed()
    )?;
    Ok(())
}

/// Measures the steps after a call has run: its result is cleaned, parsed, judged and recorded.
fn judged(journal: &dyn Journal) -> Result<Duration, Box<dyn Error>> {
    let shaper = Shaper::default();
    let start = Instant::now();
    for number in 0..CALLS {
        let facts = Facts::Command(Box::new(ProcessReport {
            duration: Duration::from_millis(3),
            output_bytes: 950,
            ..ProcessReport::new(Exit::Code(0))
        }));
        let output = Output { facts, ..Output::from("one line of output\n".repeat(50)) };
        let outcome = shaper.shape(Format::Freeform, &Criteria::default(), Ok(output), Receipt::default());
        append(journal, number, &outcome)?;
    }
    Ok(start.elapsed() / CALLS)
}

fn wal(home: &std::path::Path) -> std::path::PathBuf {
    home.join("calls.sqlite-wal")
}

/// Measures the records of a call: its item, its intent, its outcome and its output.
fn per_call(journal: &dyn Journal) -> Result<Duration, Box<dyn Error>> {
    let outcome = Outcome::plain(Verdict::success(), "one line of output\n".repeat(50));
    let start = Instant::now();
    for number in 0..CALLS {
        append(journal, number, &outcome)?;
    }
    Ok(start.elapsed() / CALLS)
}

fn append(journal: &dyn Journal, number: u32, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    let input = Input::Json(r#"{"command":"cargo test -p windlass-record","timeout_ms":60000}"#.into());
    let call = ToolCall { id: format!("call_{number:024}").into(), name: "shell_command".into(), input };
    let (id, tool) = (call.id.clone(), call.name.clone());
    let intent = Intent { call: id.clone(), tool, effects: Effects::unknown(), decision: "policy".into() };
    journal.append(&Record::Item(clean(&Body::Call(call).into())))?;
    journal.append(&Record::Intent(clean(&intent)))?;
    journal.append(&Record::Outcome { call: &id, outcome: clean(outcome) })?;
    journal.append(&Record::Outputs { calls: &[id] })?;
    Ok(())
}
