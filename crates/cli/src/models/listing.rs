//! `windlass models list`: asks a server for its models.

use std::time::Duration;

use serde_json::json;
use windlass::{
    ModelError,
    model::{Provider, list_models},
    select::RULES,
};

use crate::{
    args::{CommonOptions, ModelChoice, ModelListOptions},
    exit::ProgramExit,
    output::print,
    problem::CliProblem,
    redact,
    screen::visible,
    setup::{self, ProgramSetup},
};

/// Maximum time to wait for the list.
const LIST_TIME_LIMIT: Duration = Duration::from_secs(20);

/// Runs the command.
pub(super) fn run(common: &CommonOptions, args: &ModelListOptions) -> Result<ProgramExit, CliProblem> {
    let choice = ModelChoice { model: None, provider: args.provider.clone() };
    let setup = ProgramSetup::for_model(common, &choice)?;
    let id = setup.provider_id();
    let Some(provider) = setup.config().model_providers.get(id) else {
        debug_assert_eq!(id, RULES, "the configuration names only known providers");
        return Err(CliProblem::usage(
            "the offline rules have no models; choose a provider with `--provider`",
        ));
    };
    let mut models = ask(&setup, id, provider)?.map_err(|error| CliProblem::failed(explained(id, &error)))?;
    models.sort();
    if args.json {
        return print(&format!("{:#}\n", json!({"provider": id, "models": models})));
    }
    print(&models.iter().map(|model| format!("{}\n", visible(model))).collect::<String>())
}

/// Asks a provider for its models, with its key.
pub(crate) fn ask(
    setup: &ProgramSetup,
    id: &str,
    provider: &Provider,
) -> Result<Result<Vec<String>, ModelError>, CliProblem> {
    let stored = setup.stored_key(id, provider)?;
    let key = |name: &str| {
        setup::key(name).or_else(|| stored.clone().filter(|_| provider.key_variable() == Some(name)))
    };
    Ok(crate::runtime()?.block_on(list_models(id, provider, &key, LIST_TIME_LIMIT)))
}

/// Formats an error for a person. A server may repeat the key in its message.
pub(crate) fn explained(id: &str, error: &ModelError) -> String {
    let login = match error {
        ModelError::MissingKey { .. } => format!(", or run `windlass login {id}`"),
        _ => String::new(),
    };
    format!("{}{login}", redact::own().clean(&error.to_string()))
}
