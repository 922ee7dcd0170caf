//! Lists the models of a server with `GET /models`, which every server with an OpenAI API has.

use std::time::Duration;

use serde::Deserialize;
use windlass_contract::model::ModelError;

use crate::{Provider, WireApi, http::HttpEndpoint};

/// Maximum number of bytes of a list. That of OpenRouter has about one million.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;

/// Returns the names of the models that a server offers, in its order. `env` looks up environment
/// variables.
pub async fn list_models(
    id: &str,
    provider: &Provider,
    env: &dyn Fn(&str) -> Option<String>,
    limit: Duration,
) -> Result<Vec<String>, ModelError> {
    let mut provider = provider.clone();
    if provider.wire_api == WireApi::Messages {
        // Anthropic lists twenty models unless it is asked for more.
        provider.query_params.entry("limit".to_owned()).or_insert_with(|| "1000".into());
    }
    let endpoint = HttpEndpoint::new(id, &provider, "models", env)?;
    let body = endpoint.get(MAX_LIST_BYTES, limit).await?;
    let list: ModelList = serde_json::from_slice(&body).map_err(|error| ModelError::Provider {
        provider: id.to_owned(),
        problem: format!("its list of models cannot be read: {error}"),
    })?;
    Ok(list.data.into_iter().map(|model| model.id).collect())
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}
