//! `windlass init`: chooses a model and writes the configuration.

use std::io::{self, BufRead, Write};

use windlass::{model::Provider, select::RULES};

use crate::{
    args::{CommonOptions, InitOptions},
    confirm::{forget_typed, is_attended},
    exit::ProgramExit,
    model_sources::{KeyPlace, ModelSources, shown_name},
    models::listing,
    note,
    output::print_text,
    problem::CliProblem,
    screen::visible,
    settings,
    setup::{self, DEFAULT_OPENAI_MODEL, ProgramSetup},
    spelling::did_you_mean,
    welcome,
};

/// Maximum number of models of a server that are offered.
const MAX_OFFERED: usize = 12;

/// A provider with its model, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChosenModel {
    provider: String,
    /// The offline rules have none, and `openai` has a default.
    model: Option<String>,
}

/// Something that a person can choose.
struct FoundModel {
    label: String,
    provider: String,
    model: Option<String>,
    needs_model: bool,
}

/// Runs the command.
pub(crate) fn run(common: &CommonOptions, options: &InitOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let chosen = if let Some(provider) = &options.provider {
        named(&setup, provider, options.model.clone())?
    } else if let Some(chosen) = choose(&setup, &ModelSources::find(&setup)?, options)? {
        chosen
    } else {
        return Ok(ProgramExit::Interrupted);
    };
    if !may_replace(&setup, &chosen, options)? {
        note("nothing was changed");
        return Ok(ProgramExit::Done);
    }
    write(&chosen)?;
    say_next(&setup, &chosen)?;
    Ok(ProgramExit::Done)
}

/// Checks a choice of the command line.
fn named(setup: &ProgramSetup, provider: &str, model: Option<String>) -> Result<ChosenModel, CliProblem> {
    let known = &setup.config().model_providers;
    if provider != RULES && !known.contains_key(provider) {
        let names = known.keys().map(String::as_str).chain([RULES]);
        let hint = did_you_mean(provider, names.clone())
            .unwrap_or_else(|| format!("the providers are {}", names.collect::<Vec<_>>().join(", ")));
        return Err(CliProblem::usage(format!("there is no provider `{}`; {hint}", visible(provider))));
    }
    if model.is_none() && !matches!(provider, RULES | "openai") {
        let message = format!("name a model with --model; `windlass models list -p {provider}` lists them");
        return Err(CliProblem::usage(message));
    }
    if model.is_some() && provider == RULES {
        return Err(CliProblem::usage("the offline rules have no model; leave --model out"));
    }
    Ok(ChosenModel { provider: provider.to_owned(), model })
}

/// Lets a person choose, or takes the first model with `--yes`.
fn choose(
    setup: &ProgramSetup,
    sources: &ModelSources,
    options: &InitOptions,
) -> Result<Option<ChosenModel>, CliProblem> {
    let offered = offers(sources);
    if options.yes {
        let first = offered.iter().find(|offer| !offer.needs_model && offer.provider != RULES);
        let first = first.ok_or_else(|| CliProblem::usage(with_ways("no model was found", sources)))?;
        return Ok(Some(ChosenModel { provider: first.provider.clone(), model: first.model.clone() }));
    }
    if !is_attended() {
        let message = "there is no terminal to ask at; use --provider and --model, or --yes";
        return Err(CliProblem::usage(with_ways(message, sources)));
    }
    if sources.servers.is_empty() && sources.keyed.is_empty() {
        print_text(&(welcome::describe(sources).join("\n") + "\n\n"))?;
    }
    ask(setup, &offered)
}

fn with_ways(message: &str, sources: &ModelSources) -> String {
    format!("{message}\n\n{}", welcome::describe(sources).join("\n"))
}

/// Lists what can be chosen: the models of servers here, providers with a key, the offline rules.
fn offers(sources: &ModelSources) -> Vec<FoundModel> {
    let local = sources.servers.iter().flat_map(|server| {
        server.models.iter().take(MAX_OFFERED).map(|model| FoundModel {
            label: format!("{} on this machine: {}", visible(&server.name), visible(model)),
            provider: server.id.clone(),
            model: Some(model.clone()),
            needs_model: false,
        })
    });
    let keyed = sources.keyed.iter().map(|each| {
        let default = (each.id == "openai").then(|| DEFAULT_OPENAI_MODEL.to_owned());
        FoundModel {
            label: match (&each.key, &default) {
                (KeyPlace::Variable(variable), None) => {
                    format!("{} ({variable} is set)", visible(&each.name))
                }
                (KeyPlace::Variable(variable), Some(model)) => {
                    format!("{} ({variable} is set): {model}", visible(&each.name))
                }
                (_, None) => format!("{} (key kept by login)", visible(&each.name)),
                (_, Some(model)) => format!("{} (key kept by login): {model}", visible(&each.name)),
            },
            provider: each.id.clone(),
            needs_model: default.is_none(),
            model: default,
        }
    });
    let rules = FoundModel {
        label: "the offline rules, without a model".to_owned(),
        provider: RULES.to_owned(),
        model: None,
        needs_model: false,
    };
    local.chain(keyed).chain([rules]).collect()
}

/// Asks for a number, and for a model if the choice has none.
fn ask(setup: &ProgramSetup, offered: &[FoundModel]) -> Result<Option<ChosenModel>, CliProblem> {
    let list: String =
        offered.iter().enumerate().map(|(at, each)| format!("  {}  {}\n", at + 1, each.label)).collect();
    print_text(&format!("Choose a model:\n{list}"))?;
    forget_typed()?;
    let question = format!("Number (Enter: 1, Ctrl-C: leave) [1-{}]: ", offered.len());
    let chosen = loop {
        let Some(line) = ask_line(&question)? else { return Ok(None) };
        let number = if line.trim().is_empty() { Some(1) } else { line.trim().parse::<usize>().ok() };
        if let Some(chosen) = number.and_then(|number| offered.get(number.checked_sub(1)?)) {
            break chosen;
        }
    };
    let model = if chosen.needs_model { ask_model(setup, &chosen.provider)? } else { chosen.model.clone() };
    let is_complete = model.is_some() || !chosen.needs_model;
    Ok(is_complete.then(|| ChosenModel { provider: chosen.provider.clone(), model }))
}

/// Asks for the name of a model. A `?` asks the provider for its models, with the key.
fn ask_model(setup: &ProgramSetup, id: &str) -> Result<Option<String>, CliProblem> {
    loop {
        let Some(line) = ask_line(&format!("Model of {id} (? asks {id} for its models): "))? else {
            return Ok(None);
        };
        match line.trim() {
            "?" => list_models(setup, id)?,
            name if !name.is_empty() && !name.chars().any(char::is_control) => {
                return Ok(Some(name.to_owned()));
            }
            _ => {}
        }
    }
}

fn list_models(setup: &ProgramSetup, id: &str) -> Result<(), CliProblem> {
    let Some(provider) = setup.config().model_providers.get(id) else { return Ok(()) };
    match listing::ask(setup, id, provider)? {
        Ok(models) => {
            note(&models.iter().map(|model| format!("  {}", visible(model))).collect::<Vec<_>>().join("\n"))
        }
        Err(error) => note(&visible(&listing::explained(id, &error))),
    }
    Ok(())
}

/// Returns true if no other choice is configured, or if it may be replaced.
fn may_replace(
    setup: &ProgramSetup,
    chosen: &ChosenModel,
    options: &InitOptions,
) -> Result<bool, CliProblem> {
    let config = setup.config();
    let before = (config.model_provider.clone(), config.model.clone());
    let is_new = before == (None, None) || before == (Some(chosen.provider.clone()), chosen.model.clone());
    if is_new || options.yes {
        return Ok(true);
    }
    let now =
        [before.0, before.1].into_iter().flatten().map(|name| visible(&name)).collect::<Vec<_>>().join(" ");
    if !is_attended() {
        let message = format!("the configuration already chooses {now}; --yes replaces it");
        return Err(CliProblem::usage(message));
    }
    forget_typed()?;
    let answer = ask_line(&format!("The configuration chooses {now}. Replace it? [y/N] "))?;
    Ok(answer.is_some_and(|answer| matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")))
}

/// Writes the choice. Other keys and comments stay.
fn write(chosen: &ChosenModel) -> Result<(), CliProblem> {
    settings::change(|editor| {
        editor.set("model_provider", &chosen.provider)?;
        match &chosen.model {
            Some(model) => editor.set_text("model", model)?,
            None => drop(editor.remove("model")?),
        }
        Ok(true)
    })?;
    note(&format!("  model_provider = \"{}\"", chosen.provider));
    if let Some(model) = &chosen.model {
        note(&format!("  model = \"{}\"", visible(model)));
    }
    Ok(())
}

/// Says what is missing, and how to begin.
fn say_next(setup: &ProgramSetup, chosen: &ChosenModel) -> Result<(), CliProblem> {
    let provider = setup.config().model_providers.get(&chosen.provider);
    let variable =
        provider.and_then(Provider::key_variable).filter(|variable| setup::key(variable).is_none());
    if let (Some(provider), Some(variable)) = (provider, variable)
        && setup.stored_key(&chosen.provider, provider)?.is_none()
    {
        let name = shown_name(&chosen.provider, provider);
        note(&format!("{name} needs a key: run `windlass login {}`, or set {variable}", chosen.provider));
    }
    note("next: `windlass` opens a session; `windlass doctor --network` tests the connection");
    Ok(())
}

/// Asks on stderr and reads a line; `None` at the end of the input.
pub(crate) fn ask_line(question: &str) -> Result<Option<String>, CliProblem> {
    let failed = |error: io::Error| CliProblem::failed(format!("cannot ask: {error}"));
    io::stderr().lock().write_all(question.as_bytes()).map_err(failed)?;
    let mut line = Vec::new();
    let count = io::stdin().lock().read_until(b'\n', &mut line).map_err(failed)?;
    Ok((count > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}
