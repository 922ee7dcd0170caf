//! `windlass models`: lists models, and tests how a model calls tools.

pub(crate) mod listing;
mod probe;
mod report;
mod tasks;

use std::time::Duration;

use tokio::{signal, time};

use probe::{ModelProbe, ProbeStop};

use crate::{
    args::{CommonOptions, ModelsCommand, ProbeOptions},
    exit::ProgramExit,
    output::{print, print_text},
    problem::CliProblem,
    redact,
    setup::ProgramSetup,
};

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, args: &ModelsCommand) -> Result<ProgramExit, CliProblem> {
    match args {
        ModelsCommand::List(args) => listing::run(common, args),
        ModelsCommand::Probe(args) => run_probe(common, args),
    }
}

fn run_probe(common: &CommonOptions, args: &ProbeOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_model(common, &args.choice)?.with_installed_model()?;
    let served = setup.served()?;
    let mut probing = ModelProbe::new(&served)?;
    let stopped = crate::runtime()?.block_on(until_stopped(&mut probing, args))?;
    let trials = probing.trials();
    // A server may repeat a key in its error message.
    if args.json {
        print(&redact::own().clean(&report::json(&served, trials, stopped)))?;
    } else {
        print_text(&redact::own().clean(&report::text(&served, trials, stopped)))?;
    }
    Ok(match stopped {
        Some(stopped) => {
            crate::note(stopped.message());
            stopped.exit()
        }
        None if report::best(trials).is_some() => ProgramExit::Done,
        None => ProgramExit::Failed,
    })
}

/// Probes until the result is complete, the time is up or Ctrl-C is pressed. Partial results are
/// kept.
async fn until_stopped(
    probing: &mut ModelProbe<'_>,
    args: &ProbeOptions,
) -> Result<Option<ProbeStop>, CliProblem> {
    let limit = Duration::from_secs(args.time_limit);
    tokio::select! {
        end = time::timeout(limit, probing.run()) => match end {
            Ok(end) => end.map(|()| None).map_err(|error| CliProblem::failed(error.to_string())),
            Err(_) => Ok(Some(ProbeStop::TimeUp)),
        },
        _ = signal::ctrl_c() => Ok(Some(ProbeStop::Interrupted)),
    }
}
