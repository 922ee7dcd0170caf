//! Measures the time to append a record in each durability mode: `cargo bench -p windlass-record
//! [-- DIRECTORY]`. The directory selects the disk to measure.

use std::{
    env,
    error::Error,
    io::{self, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

use ring::digest::{SHA256, digest};
use windlass_contract::{
    Item, Journal,
    item::Role,
    journal::{Record, SessionMeta},
};
use windlass_fakes::clean;
use windlass_record::{DurabilityMode, SessionFile, load, new_thread_id};

fn main() -> Result<(), Box<dyn Error>> {
    let below = env::args_os().skip(1).map(PathBuf::from).find(|path| path.is_dir());
    let home = tempfile::tempdir_in(below.unwrap_or_else(env::temp_dir))?;
    let meta = SessionMeta {
        id: new_thread_id(),
        cwd: "/".into(),
        version: "0".into(),
        instructions: "x".repeat(10_000),
        parent: None,
    };
    let mut session = SessionFile::create(home.path(), &meta)?;
    let mut out = io::stdout();

    for bytes in [200, 10_000, 1_000_000] {
        let item = Item::message(Role::User, "y".repeat(bytes));
        let mut costs = Vec::new();
        for (durability, times) in
            [(DurabilityMode::Never, 100), (DurabilityMode::Effects, 100), (DurabilityMode::Always, 20)]
        {
            session = session.with_durability(durability);
            let cost = mean(times, || Ok(session.append(&Record::Item(clean(&item)))?))?;
            costs.push(format!("{durability:?} {cost:.1?}"));
        }
        let line = vec![b'y'; bytes];
        let chained = mean(100, || {
            std::hint::black_box(digest(&SHA256, &line));
            Ok(())
        })?;
        let costs = costs.join(", ");
        writeln!(out, "append {bytes:>9} bytes: {costs}; of which the chain {chained:.1?}")?;
    }
    let bytes = session.path().metadata()?.len();
    let start = Instant::now();
    load(session.path())?;
    writeln!(out, "load   {bytes:>9} bytes: {:>10.1?}", start.elapsed())?;
    Ok(())
}

fn mean(
    times: u32,
    mut what: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    for _ in 0..times {
        what()?;
    }
    Ok(start.elapsed() / times)
}
