//! The model that answers, its provider, and the options of its requests.

use std::{num::NonZeroU64, sync::Arc};

use serde::Serialize;
use windlass::{
    BuildError, ModelClient, ModelError,
    model::{self, Options, Provider, WireApi},
    select::{self, FORMER_NAME, RULES},
};

use windlass_tui::OfferedModel;

use super::{ProgramSetup, machine::key};
use crate::{config, credentials::StoredKeys, problem::CliProblem};

/// The default model of the `openai` provider.
pub(crate) const DEFAULT_OPENAI_MODEL: &str = "gpt-5.2-codex";

impl ProgramSetup {
    /// Returns the number of tokens that the model can read.
    pub(crate) fn context_window(&self) -> u64 {
        let known = || self.config().family(&self.model_name().unwrap_or_default()).context_window;
        self.config().model_context_window.unwrap_or_else(known).get()
    }

    /// Returns true if the provider's wire has tools beyond functions.
    pub(super) fn speaks_responses(&self) -> bool {
        let id = self.provider_id();
        let provider = self.config().model_providers.get(id);
        id != RULES && provider.is_none_or(|provider| provider.wire_api == WireApi::Responses)
    }

    /// Returns the wire of the model, as [`windlass::ModelInfo`] names it.
    pub(super) fn wire(&self) -> &'static str {
        let provider = self.config().model_providers.get(self.provider_id());
        match provider.map(|provider| provider.wire_api) {
            Some(WireApi::Messages) => WireApi::Messages.name(),
            _ if self.speaks_responses() => "responses",
            _ => "chat",
        }
    }

    /// Returns true if a model answers, and not the offline rules.
    pub(crate) fn has_model(&self) -> bool {
        self.provider_id() != RULES
    }

    pub(crate) fn provider_id(&self) -> &str {
        match self.config().model_provider.as_deref() {
            Some(FORMER_NAME) => RULES,
            chosen => chosen.unwrap_or(self.usual_provider),
        }
    }

    pub(crate) fn model_name(&self) -> Option<String> {
        let default = match self.provider_id() {
            "openai" => Some(DEFAULT_OPENAI_MODEL),
            "scripted" => Some("scripted"),
            RULES => Some(RULES),
            _ => None,
        };
        self.config().model.clone().or_else(|| default.map(str::to_owned))
    }

    /// Returns the providers with their models as far as they are known, without asking a server.
    pub(crate) fn offered_models(&self) -> Vec<OfferedModel> {
        let provider = |(id, provider): (&String, &Provider)| {
            let missing = provider.key_variable().filter(|name| key(name).is_none());
            OfferedModel {
                provider: id.clone(),
                model: (id == "openai").then(|| DEFAULT_OPENAI_MODEL.to_owned()),
                obstacle: missing.map(|name| format!("`{name}` is not set")),
            }
        };
        let is_listed = |(id, _): &(&String, &Provider)| id.as_str() != "scripted";
        let rules =
            OfferedModel { provider: RULES.to_owned(), model: Some(RULES.to_owned()), obstacle: None };
        let providers = self.config().model_providers.iter().filter(is_listed).map(provider);
        providers.chain([rules]).collect()
    }

    pub(super) fn client(&self) -> Result<Arc<dyn ModelClient>, CliProblem> {
        if self.provider_id() == RULES {
            return Ok(select::rules());
        }
        let served = self.served()?;
        served.connect(served.provider).map_err(|error| {
            // Users without a chosen provider may not know that there are others.
            let chosen =
                self.config().model_provider.is_some() || !matches!(error, ModelError::MissingKey { .. });
            let hint =
                if chosen { "" } else { ", or choose another provider with `--provider`, such as ollama" };
            CliProblem::usage(format!("{}{hint}", served.explain(&error)))
        })
    }

    /// Returns true if the provider was chosen explicitly. If it was only implied by a key, the key
    /// may be missing today.
    pub(crate) fn has_chosen_provider(&self) -> bool {
        self.config().model_provider.is_some() || self.usual_provider != RULES
    }

    /// Explains why there is no agent, and how to fix that.
    pub(crate) fn explain(&self, error: &BuildError) -> CliProblem {
        let problem = CliProblem::build(error);
        let BuildError::OtherProvider { provider, .. } = error else { return problem };
        let known = self.config().model_providers.get(provider);
        let missing = known.and_then(Provider::key_variable).filter(|name| {
            let stored = known.and_then(|known| self.stored_key(provider, known).ok().flatten());
            key(name).is_none() && stored.is_none()
        });
        let how = match missing {
            Some(variable) => format!("`{variable}` is not set; set it or run `windlass login {provider}`"),
            None => format!("choose it with `--provider {provider}`"),
        };
        let message = format!("{}; {how}, or continue with another `--provider`", problem.message);
        CliProblem { message, ..problem }
    }

    /// Returns the key that `windlass login` keeps for a provider, unless its variable is set.
    pub(crate) fn stored_key(&self, id: &str, provider: &Provider) -> Result<Option<String>, CliProblem> {
        let Some(variable) = provider.key_variable().filter(|name| key(name).is_none()) else {
            return Ok(None);
        };
        Ok(StoredKeys::load(&self.home)?.for_variable(id, provider, variable))
    }

    /// Returns the chosen model with its provider and the options of its requests.
    pub(crate) fn served(&self) -> Result<ServedModel<'_>, CliProblem> {
        let (config, id) = (self.config(), self.provider_id());
        if id == RULES {
            let message = "the offline rules have no server; choose a provider with `--provider`";
            return Err(CliProblem::usage(message));
        }
        let Some(provider) = config.model_providers.get(id) else {
            let known = [RULES].into_iter().chain(config.model_providers.keys().map(String::as_str));
            let known: Vec<_> = known.collect();
            return Err(CliProblem::usage(format!(
                "there is no provider `{id}`; the providers are {}",
                known.join(", ")
            )));
        };
        let model = self.model_name().ok_or_else(|| {
            CliProblem::usage(format!(
                "no model is set for `{id}`; use `--model`, or set `model` in the configuration"
            ))
        })?;
        // A reasoning model is asked for a summary. That also makes its server return the encrypted
        // reasoning, so that it is not lost between requests.
        let summary = config.model_reasoning_summary;
        let summary =
            summary.or_else(|| config.family(&model).reasoning.then_some(config::ReasoningSummary::Auto));
        let options = Options {
            model,
            reasoning_effort: config.model_reasoning_effort.clone(),
            reasoning_summary: summary.and_then(spelled),
            verbosity: config.model_verbosity.and_then(spelled),
            max_output_tokens: config.model_max_output_tokens.map(NonZeroU64::get),
        };
        Ok(ServedModel { id, provider, options, stored_key: self.stored_key(id, provider)? })
    }
}

/// A model as it was chosen.
pub(crate) struct ServedModel<'a> {
    pub(crate) id: &'a str,
    pub(crate) provider: &'a Provider,
    pub(crate) options: Options,
    /// The key that `windlass login` keeps, if no variable holds one.
    pub(crate) stored_key: Option<String>,
}

impl ServedModel<'_> {
    /// Connects to the model, through this or a changed provider.
    pub(crate) fn connect(&self, provider: &Provider) -> Result<Arc<dyn ModelClient>, ModelError> {
        let stored = |_: &&str| self.stored_key.clone();
        let found = |name: &str| {
            key(name)
                .or_else(|| provider.key_variable().filter(|each| *each == name).as_ref().and_then(stored))
        };
        model::connect(self.id, provider, self.options.clone(), &found)
    }

    /// Formats an error of this model, with the command that keeps a missing key.
    pub(crate) fn explain(&self, error: &ModelError) -> String {
        match error {
            ModelError::MissingKey { .. } => format!("{error}, or run `windlass login {}`", self.id),
            _ => error.to_string(),
        }
    }
}

/// Returns a choice as the configuration, and every server, spells it.
fn spelled(choice: impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}
