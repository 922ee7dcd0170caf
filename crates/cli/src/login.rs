//! `windlass login` and `windlass logout`: API keys in a private file.

use std::io::{self, IsTerminal, Read};

use windlass::model::Provider;

use crate::{
    args::{CommonOptions, LoginOptions, LogoutOptions},
    credentials::{self, ApiKey, StoredKeys},
    exit::ProgramExit,
    hidden_prompt,
    model_sources::{KeyPlace, keyed_providers, shown_name},
    note,
    output::print,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::{self, ProgramSetup},
    spelling::did_you_mean,
    table::TextTable,
};

/// Maximum size of what is read from stdin.
const MAX_INPUT_BYTES: u64 = 64 * 1024;

/// Runs `login`.
pub(crate) fn run(common: &CommonOptions, options: &LoginOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let Some(id) = options.provider.as_deref() else { return show_status(&setup) };
    let (provider, variable) = find(&setup, id)?;
    // A file that cannot be changed is reported before the person types.
    StoredKeys::load(&setup.home)?;
    let Some(text) = read_key(&shown_name(id, provider))? else {
        note("no key was read; nothing was changed");
        return Ok(ProgramExit::Interrupted);
    };
    let key = ApiKey::parse(&text)?;
    let is_replaced = credentials::change(&setup.home, |keys| keys.insert(id, &key))?;
    let path = visible_path(&credentials::file(&setup.home));
    let verb = if is_replaced { "replaced" } else { "kept" };
    note(&format!("{verb} the API key of {id} in {path} (mode 0600)"));
    if setup::key(variable).is_some() {
        note(&format!("{variable} is set, too, and has precedence"));
    }
    if setup.config().model_provider.is_none() && setup.config().model.is_none() {
        let model = if id == "openai" { "" } else { " -m MODEL" };
        note(&format!("next: windlass init -p {id}{model}"));
    }
    Ok(ProgramExit::Done)
}

/// Runs `logout`.
pub(crate) fn log_out(common: &CommonOptions, options: &LogoutOptions) -> Result<ProgramExit, CliProblem> {
    let setup = ProgramSetup::for_tools(common)?;
    let id = &options.provider;
    // A key of a provider that is no longer configured can be removed, too.
    if StoredKeys::load(&setup.home)?.get(id).is_none() {
        find(&setup, id)?;
        return Err(CliProblem::failed(format!("no API key of {id} is kept")));
    }
    credentials::change(&setup.home, |keys| keys.remove(id))?;
    note(&format!("removed the API key of {}", visible(id)));
    let variable = setup.config().model_providers.get(id).and_then(Provider::key_variable);
    if let Some(variable) = variable.filter(|variable| setup::key(variable).is_some()) {
        note(&format!("{variable} is still set"));
    }
    Ok(ProgramExit::Done)
}

/// Returns a provider that takes a key, and the variable of the key.
fn find<'a>(setup: &'a ProgramSetup, id: &str) -> Result<(&'a Provider, &'a str), CliProblem> {
    let providers = &setup.config().model_providers;
    let Some(provider) = providers.get(id) else {
        let hint = did_you_mean(id, providers.keys().map(String::as_str))
            .unwrap_or_else(|| "`windlass login --status` lists those that take a key".to_owned());
        return Err(CliProblem::usage(format!("there is no provider `{}`; {hint}", visible(id))));
    };
    let variable = provider.key_variable().ok_or_else(|| {
        let hint =
            format!("if its server does, set `model_providers.{id}.env_key` to the name of a variable");
        CliProblem::usage(format!("the provider `{id}` takes no API key; {hint}"))
    })?;
    Ok((provider, variable))
}

/// Reads the key: hidden at a terminal, else from stdin.
fn read_key(name: &str) -> Result<Option<String>, CliProblem> {
    let failed = |error: io::Error| CliProblem::failed(format!("cannot read the API key: {error}"));
    if io::stdin().is_terminal() {
        return hidden_prompt::ask(&format!("API key of {} (not shown): ", visible(name)));
    }
    let mut text = String::new();
    io::stdin().lock().take(MAX_INPUT_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Lists the providers that take a key. Keys themselves are never printed.
fn show_status(setup: &ProgramSetup) -> Result<ProgramExit, CliProblem> {
    let stored = StoredKeys::load(&setup.home)?;
    let known = keyed_providers(setup)?;
    let unknown = stored.ids().filter(|id| known.iter().all(|each| each.id != *id));
    let unknown = unknown.map(|id| [visible(id), "kept by login; there is no such provider".to_owned()]);
    let rows = known.iter().map(|each| {
        let place = match &each.key {
            KeyPlace::Variable(variable) if stored.get(&each.id).is_some() => {
                format!("{variable} is set (a key kept by login is not used)")
            }
            KeyPlace::Variable(variable) => format!("{variable} is set"),
            KeyPlace::Login => "kept by login".to_owned(),
            KeyPlace::Missing(variable) => {
                format!("none; run `windlass login {}` or set {variable}", each.id)
            }
        };
        [visible(&each.id), visible(&place)]
    });
    let rows = rows.chain(unknown).collect();
    print(
        &TextTable {
            titles: ["PROVIDER", "KEY"],
            expendable: &[],
            last: crate::table::LastColumn::Wrapped,
            rows,
        }
        .text(),
    )
}
