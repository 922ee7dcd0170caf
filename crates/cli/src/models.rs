//! `windlass models`: how a model calls tools.

mod probe;
mod report;
mod tasks;

use std::time::Duration;

use tokio::{signal, time};

use probe::{Probing, Stopped};

use crate::{
    args::{Common, Models, Probe},
    exit::Exit,
    output::print,
    problem::Problem,
    redact,
    setup::Setup,
};

/// Runs the command.
pub(crate) fn run(common: &Common, args: &Models) -> Result<Exit, Problem> {
    let Models::Probe(args) = args;
    let setup = Setup::for_model(common, &args.choice)?;
    let served = setup.served()?;
    let mut probing = Probing::new(&served)?;
    let stopped = crate::runtime()?.block_on(until_stopped(&mut probing, args))?;
    let trials = probing.trials();
    let shown = if args.json {
        report::json(&served, trials, stopped)
    } else {
        report::text(&served, trials, stopped)
    };
    // A server may repeat a key in what it says of it.
    print(&redact::own().clean(&shown))?;
    Ok(match stopped {
        Some(stopped) => {
            crate::note(stopped.said());
            stopped.exit()
        }
        None if report::best(trials).is_some() => Exit::Done,
        None => Exit::Failed,
    })
}

/// Probes until all is known, the time is up or someone presses Ctrl-C. What was found out until then stays.
async fn until_stopped(probing: &mut Probing<'_>, args: &Probe) -> Result<Option<Stopped>, Problem> {
    let limit = Duration::from_secs(args.time_limit);
    tokio::select! {
        end = time::timeout(limit, probing.run()) => match end {
            Ok(end) => end.map(|()| None).map_err(|error| Problem::failed(error.to_string())),
            Err(_) => Ok(Some(Stopped::TimeUp)),
        },
        _ = signal::ctrl_c() => Ok(Some(Stopped::Interrupted)),
    }
}
