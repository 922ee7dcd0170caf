//! Models that could be used on this machine: servers that run here, and providers with a key.

use std::time::Duration;

use tokio::task::LocalSet;
use windlass::model::{Provider, WireApi, list_models};

use crate::{credentials::StoredKeys, problem::CliProblem, setup, setup::ProgramSetup};

/// Maximum time to wait for a server on this machine. All are asked at the same time.
const SERVER_TIME_LIMIT: Duration = Duration::from_millis(500);

/// Maximum length of the name of a model. A longer one is not a name.
const MAX_NAME_CHARS: usize = 120;

/// Models that were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelSources {
    /// Servers on this machine that answered.
    pub(crate) servers: Vec<LocalServer>,
    /// Providers whose key is set or kept.
    pub(crate) keyed: Vec<KeyedProvider>,
}

/// A server on this machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LocalServer {
    /// Id of its provider.
    pub(crate) id: String,
    /// Name for a person.
    pub(crate) name: String,
    /// The models that it offers.
    pub(crate) models: Vec<String>,
}

/// A provider whose key is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyedProvider {
    /// Id of the provider.
    pub(crate) id: String,
    /// Name for a person.
    pub(crate) name: String,
    /// The place of the key.
    pub(crate) key: KeyPlace,
}

/// The place of an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// An environment variable, which has precedence.
    Variable(String),
    /// The file of `windlass login`.
    Login,
    /// There is none. It would be in this variable.
    Missing(String),
}

impl ModelSources {
    /// Looks at the environment and asks servers on this machine. Sends no key, and nothing to
    /// other machines.
    pub(crate) fn find(setup: &ProgramSetup) -> Result<Self, CliProblem> {
        let providers = keyed_providers(setup)?;
        let keyed = providers.into_iter().filter(|each| !matches!(each.key, KeyPlace::Missing(_)));
        Ok(Self { servers: find_servers(setup)?, keyed: keyed.collect() })
    }
}

/// Returns every provider that takes a key, with the place of it.
pub(crate) fn keyed_providers(setup: &ProgramSetup) -> Result<Vec<KeyedProvider>, CliProblem> {
    let stored = StoredKeys::load(&setup.home)?;
    let keyed = |(id, provider): (&String, &Provider)| {
        let variable = provider.key_variable()?;
        let key = if setup::key(variable).is_some() {
            KeyPlace::Variable(variable.to_owned())
        } else if stored.get(id).is_some() {
            KeyPlace::Login
        } else {
            KeyPlace::Missing(variable.to_owned())
        };
        Some(KeyedProvider { id: id.clone(), name: shown_name(id, provider), key })
    };
    Ok(setup.config().model_providers.iter().filter_map(keyed).collect())
}

/// Returns the name of a provider for a person.
pub(crate) fn shown_name(id: &str, provider: &Provider) -> String {
    if provider.name.is_empty() { id.to_owned() } else { provider.name.clone() }
}

fn find_servers(setup: &ProgramSetup) -> Result<Vec<LocalServer>, CliProblem> {
    let is_local =
        |provider: &Provider| provider.wire_api != WireApi::Scripted && provider.is_on_this_machine();
    let local = setup.config().model_providers.iter().filter(|(_, provider)| is_local(provider));
    let local: Vec<_> = local.map(|(id, provider)| (id.clone(), provider.clone())).collect();
    let runtime = crate::runtime()?;
    let tasks = LocalSet::new();
    let asked: Vec<_> =
        local.into_iter().map(|(id, provider)| tasks.spawn_local(ask_server(id, provider))).collect();
    let servers = runtime.block_on(tasks.run_until(async {
        let mut servers = Vec::new();
        for server in asked {
            servers.extend(server.await.ok().flatten());
        }
        servers
    }));
    // The resolver may still look for a name.
    runtime.shutdown_background();
    Ok(servers)
}

/// Asks a server for its models. Another program on its port gives no list.
async fn ask_server(id: String, provider: Provider) -> Option<LocalServer> {
    // Without headers and keys: it is not known yet what listens there.
    let bare = Provider { base_url: provider.base_url.clone(), ..Provider::default() };
    let models = list_models(&id, &bare, &|_| None, SERVER_TIME_LIMIT).await.ok()?;
    let models: Vec<_> = models.into_iter().filter(|model| is_name(model)).collect();
    let name = shown_name(&id, &provider);
    (!models.is_empty()).then_some(LocalServer { id, name, models })
}

/// Returns true for a name that can be shown and typed.
pub(crate) fn is_name(model: &str) -> bool {
    !model.is_empty()
        && !model.starts_with('-')
        && model.chars().count() <= MAX_NAME_CHARS
        && !model.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_name_is_not_offered() {
        for (name, expected) in
            [("qwen3:8b", true), ("a b", true), ("", false), ("--yes", false), ("a\u{1b}[2J", false)]
        {
            assert_eq!(is_name(name), expected, "{name:?}");
        }
        assert!(!is_name(&"x".repeat(MAX_NAME_CHARS + 1)));
    }
}
