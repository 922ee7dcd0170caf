//! Which model answers, where it is served, and what is asked of it.

use std::{num::NonZeroU64, sync::Arc};

use serde::Serialize;
use windlass::{
    BuildError, Family, ModelClient, ModelError,
    model::{self, Options, Provider, WireApi},
    select::{self, FORMER_NAME, RULES},
};

use super::{Setup, machine::key};
use crate::{config, problem::Problem};

/// The model of the `openai` provider, where none is named.
const DEFAULT_OPENAI_MODEL: &str = "gpt-5.2-codex";

impl Setup {
    /// How many tokens the model can read.
    pub(crate) fn context_window(&self) -> u64 {
        let known = || Family::of(&self.model_name().unwrap_or_default()).context_window;
        self.config().model_context_window.unwrap_or_else(known).get()
    }

    /// Whether the provider's wire has tools beyond functions.
    pub(super) fn speaks_responses(&self) -> bool {
        let id = self.provider_id();
        let provider = self.config().model_providers.get(id);
        id != RULES && provider.is_none_or(|provider| provider.wire_api == WireApi::Responses)
    }

    /// The wire the model is reached by, as [`windlass::ModelInfo`] calls it.
    pub(super) fn wire(&self) -> &'static str {
        if self.speaks_responses() { "responses" } else { "chat" }
    }

    /// Whether a model answers, and not the rules.
    pub(crate) fn has_model(&self) -> bool {
        self.provider_id() != RULES
    }

    fn provider_id(&self) -> &str {
        match self.config().model_provider.as_deref() {
            Some(FORMER_NAME) => RULES,
            chosen => chosen.unwrap_or(self.usual_provider),
        }
    }

    pub(super) fn model_name(&self) -> Option<String> {
        let default = match self.provider_id() {
            "openai" => Some(DEFAULT_OPENAI_MODEL),
            "scripted" => Some("scripted"),
            RULES => Some(RULES),
            _ => None,
        };
        self.config().model.clone().or_else(|| default.map(str::to_owned))
    }

    pub(super) fn client(&self) -> Result<Arc<dyn ModelClient>, Problem> {
        if self.provider_id() == RULES {
            return Ok(select::rules());
        }
        let served = self.served()?;
        served.connect(served.provider).map_err(|error| {
            // Whoever has not chosen a provider may not know that there are others.
            let chosen =
                self.config().model_provider.is_some() || !matches!(error, ModelError::MissingKey { .. });
            let hint =
                if chosen { "" } else { ", or choose another provider with `--provider`, such as ollama" };
            Problem::usage(format!("{error}{hint}"))
        })
    }

    /// Whether anyone has said who answers. Where a key was all that said so, it may be missing today.
    pub(crate) fn has_chosen_provider(&self) -> bool {
        self.config().model_provider.is_some() || self.usual_provider != RULES
    }

    /// Why there is no agent, with what to do about it.
    pub(crate) fn explain(&self, error: &BuildError) -> Problem {
        let problem = Problem::build(error);
        let BuildError::OtherProvider { provider, .. } = error else { return problem };
        let known = self.config().model_providers.get(provider);
        let missing = known.and_then(Provider::key_variable).filter(|name| key(name).is_none());
        let how = match missing {
            Some(variable) => format!("`{variable}` is not set; set it"),
            None => format!("choose it with `--provider {provider}`"),
        };
        let message = format!("{}; {how}, or go on with another by `--provider`", problem.message);
        Problem { message, ..problem }
    }

    /// Where the model is served, and what is asked of it.
    pub(crate) fn served(&self) -> Result<Served<'_>, Problem> {
        let (config, id) = (self.config(), self.provider_id());
        if id == RULES {
            let message = "the offline rules have no server; choose a provider with `--provider`";
            return Err(Problem::usage(message));
        }
        let Some(provider) = config.model_providers.get(id) else {
            let known = [RULES].into_iter().chain(config.model_providers.keys().map(String::as_str));
            let known: Vec<_> = known.collect();
            return Err(Problem::usage(format!(
                "there is no provider `{id}`; there are {}",
                known.join(", ")
            )));
        };
        let model = self.model_name().ok_or_else(|| {
            Problem::usage(format!(
                "which model of `{id}`? give it with `--model`, or set `model` in the configuration"
            ))
        })?;
        // A model that thinks is asked for a summary of its thoughts, which also makes its server hand the thoughts
        // themselves over, sealed, so that they are not lost from one request to the next.
        let summary = config.model_reasoning_summary;
        let summary =
            summary.or_else(|| Family::of(&model).reasoning.then_some(config::ReasoningSummary::Auto));
        let options = Options {
            model,
            reasoning_effort: config.model_reasoning_effort.clone(),
            reasoning_summary: summary.and_then(spelled),
            verbosity: config.model_verbosity.and_then(spelled),
            max_output_tokens: config.model_max_output_tokens.map(NonZeroU64::get),
        };
        Ok(Served { id, provider, options })
    }
}

/// A model as it was chosen.
pub(crate) struct Served<'a> {
    pub(crate) id: &'a str,
    pub(crate) provider: &'a Provider,
    pub(crate) options: Options,
}

impl Served<'_> {
    /// A client for the model, through this or a changed provider.
    pub(crate) fn connect(&self, provider: &Provider) -> Result<Arc<dyn ModelClient>, ModelError> {
        model::connect(self.id, provider, self.options.clone(), &key)
    }
}

/// A choice as the configuration, and every server, spells it.
fn spelled(choice: impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}
