//! Clients for language models: the Responses API, Chat Completions, the Messages API, and scripts.
//!
//! A [`Provider`] describes the server of a model; [`connect`] makes a [`ModelClient`] from it.
//! Only this crate knows a provider's JSON. It reads no file except a script and certificates, and
//! no environment variable except those of proxies and certificates. Keys come from a function that
//! the caller passes.
//!
//! ```
//! use windlass_contract::{Item, item::{Cached, Role}, model::{ModelEvent, Prompt}};
//! use windlass_model::{Options, Provider, WireApi, connect};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # let script = directory.path().join("hello.json");
//! std::fs::write(&script, r#"{"turns": [{"text": "Hello!"}]}"#)?;
//! let provider = Provider { wire_api: WireApi::Scripted, script: Some(script), ..Provider::default() };
//! let client = connect("mine", &provider, Options::default(), &|name| std::env::var(name).ok())?;
//!
//! let mut answer = client
//!     .open(Prompt {
//!         thread: &"019a8b2c".into(),
//!         instructions: "Be brief.",
//!         history: &[Cached::new(Item::message(Role::User, "Hi"))],
//!         tools: &Cached::new(vec![]),
//!         parallel_calls: false,
//!         output_schema: None,
//!     })
//!     .await?;
//! let mut text = String::new();
//! while let Some(event) = answer.next().await {
//!     if let ModelEvent::TextDelta(piece) = event? {
//!         text += &piece;
//!     }
//! }
//! assert_eq!(text, "Hello!");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod calls;
mod chat;
mod dialect;
mod failure;
mod freeform;
mod http;
mod json;
mod listing;
mod messages;
mod provider;
mod responses;
mod schema_profile;
mod scripted;
mod sse;
mod usage;

use std::{sync::Arc, time::Duration};

use windlass_contract::model::{ModelClient, ModelError, ModelInfo};

pub use dialect::Dialect;
pub use listing::list_models;
pub use provider::{Provider, Secret, WireApi, presets};
pub use schema_profile::SchemaProfile;

/// Name of the output schema in requests.
const OUTPUT_SCHEMA_NAME: &str = "codex_output_schema";

/// Request settings that every provider understands. `None` leaves a setting to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The model's name.
    pub model: String,
    /// Reasoning effort, such as `low` or `high`.
    pub reasoning_effort: Option<String>,
    /// Style of reasoning summaries, such as `auto` or `none`.
    pub reasoning_summary: Option<String>,
    /// Verbosity of the answer, such as `low` or `high`.
    pub verbosity: Option<String>,
    /// Maximum number of tokens in one answer.
    pub max_output_tokens: Option<u64>,
}

/// Returns a client for a provider. Sends nothing yet; `env` looks up environment variables.
pub fn connect(
    id: &str,
    provider: &Provider,
    options: Options,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Arc<dyn ModelClient>, ModelError> {
    let info = ModelInfo {
        provider: id.to_owned(),
        model: options.model.clone(),
        wire: provider.wire_api.name(),
        request_retries: provider.request_retries(),
        stream_retries: provider.stream_retries(),
        retry_budget: provider.retry_budget(),
    };
    if let Some(problem) = provider.contradiction() {
        return Err(ModelError::Provider { provider: id.to_owned(), problem });
    }
    Ok(match provider.wire_api {
        WireApi::Responses => Arc::new(responses::ResponsesClient::new(info, provider, options, env)?),
        WireApi::Chat => Arc::new(chat::ChatClient::new(info, provider, options, env)?),
        WireApi::Messages => Arc::new(messages::MessagesClient::new(info, provider, options, env)?),
        WireApi::Scripted => {
            let script = provider.script.as_deref().ok_or_else(|| ModelError::Provider {
                provider: id.to_owned(),
                problem: "it has no `script`; name a JSON file of model turns".to_owned(),
            })?;
            Arc::new(scripted::ScriptedClient::new(info, script)?)
        }
    })
}

/// Returns a model that plays a script given as text, for tests and demos (see `docs/scripts.md`).
pub fn scripted(script: &str) -> Result<Arc<dyn ModelClient>, ModelError> {
    let wire = WireApi::Scripted.name();
    let info = ModelInfo {
        provider: wire.to_owned(),
        model: wire.to_owned(),
        wire,
        request_retries: 0,
        stream_retries: 0,
        retry_budget: Duration::ZERO,
    };
    Ok(Arc::new(scripted::ScriptedClient::parse(info, "the script".to_owned(), script)?))
}
