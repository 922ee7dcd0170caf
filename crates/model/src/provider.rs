//! Configuration of a model server.

use std::{collections::BTreeMap, fmt, net::IpAddr, path::PathBuf, time::Duration};

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Dialect, SchemaProfile, http::StreamTimeouts};

/// Maximum number of retries that a configuration can set.
const MAX_RETRIES: u32 = 100;

/// A server that answers as a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// A name for people. `azure` (in any case) also makes the server keep answers, which Azure
    /// demands.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Base URL of the API, such as `https://api.openai.com/v1`; `/responses`,
    /// `/chat/completions` or `/messages` is added. A server on this machine is reached directly;
    /// any other through `HTTP_PROXY`, `HTTPS_PROXY` or `ALL_PROXY` if they are set and `NO_PROXY`
    /// does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the API key. Without it no key is sent. The key is sent
    /// as `Authorization: Bearer`, or with `wire_api = "messages"` as `x-api-key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_key: Option<String>,
    /// Advice for a user without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_key_instructions: Option<String>,
    /// The API key itself. Prefer `env_key`: configuration files get copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experimental_bearer_token: Option<Secret>,
    /// Protocol of the server.
    pub wire_api: WireApi,
    /// Added to the query of every request, such as Azure's `api-version`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, Secret>,
    /// Added to the headers of every request; they win over ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub http_headers: BTreeMap<String, Secret>,
    /// Headers whose values are environment variables; one that is not set or empty is left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env_http_headers: BTreeMap<String, String>,
    /// Maximum number of times that a request is sent again if it failed before its answer began,
    /// within `retry_budget_ms`; at most 100.
    pub request_max_retries: u32,
    /// Maximum number of times that an answer that broke off is requested again; at most 100.
    pub stream_max_retries: u32,
    /// Maximum time spent on retries while the server does not answer, in milliseconds.
    pub retry_budget_ms: u64,
    /// Maximum time without an event from the server, in milliseconds. Comments and other bytes
    /// that are no event extend this to three times as long.
    pub stream_idle_timeout_ms: u64,
    /// Maximum duration of one answer, in milliseconds.
    pub stream_timeout_ms: u64,
    /// Form of the parameter schemas of tools: `faithful`, or `lossy` for servers that cannot
    /// handle all keywords.
    pub tool_schemas: SchemaProfile,
    /// Notation of calls, if the server leaves them in the text. Only for `wire_api = "chat"`;
    /// `windlass models probe` detects it. Unset means `native`, with one exception: a server on
    /// this machine or in a private network may leave calls in the text. A text of nothing but
    /// calls then counts as calls if they name tools of the request and fit their parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_dialect: Option<Dialect>,
    /// Describes the tools in the instructions, in the notation of the dialect, and sends calls and
    /// results as text: for servers that ignore `tools` or refuse them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tool_prompt: bool,
    /// For `wire_api = "scripted"`: the JSON file with the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<PathBuf>,
    /// File with certificates in PEM form. They are trusted in addition to those of the system (or
    /// of `SSL_CERT_FILE`): for a server or a proxy whose certificate an authority of your own
    /// signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Reads the key from `OPENAI_API_KEY` unless `env_key` names another variable.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_openai_auth: bool,
}

impl Default for Provider {
    fn default() -> Self {
        Self {
            name: String::new(),
            base_url: None,
            env_key: None,
            env_key_instructions: None,
            experimental_bearer_token: None,
            wire_api: WireApi::Responses,
            query_params: BTreeMap::new(),
            http_headers: BTreeMap::new(),
            env_http_headers: BTreeMap::new(),
            request_max_retries: 20,
            stream_max_retries: 5,
            retry_budget_ms: 120_000,
            stream_idle_timeout_ms: 300_000,
            stream_timeout_ms: 1_800_000,
            tool_schemas: SchemaProfile::Faithful,
            tool_dialect: None,
            tool_prompt: false,
            script: None,
            ca_file: None,
            requires_openai_auth: false,
        }
    }
}

impl Provider {
    /// Returns the variable that holds the key, if the provider needs one.
    pub fn key_variable(&self) -> Option<&str> {
        self.env_key.as_deref().or(self.requires_openai_auth.then_some("OPENAI_API_KEY"))
    }

    /// Returns true if the server is on this machine, by its address.
    pub fn is_on_this_machine(&self) -> bool {
        let url = self.base_url.as_deref().and_then(|url| Url::parse(url).ok());
        url.is_some_and(|url| crate::http::is_loopback(&url))
    }

    pub(crate) fn request_retries(&self) -> u32 {
        self.request_max_retries.min(MAX_RETRIES)
    }

    pub(crate) fn stream_retries(&self) -> u32 {
        self.stream_max_retries.min(MAX_RETRIES)
    }

    pub(crate) fn retry_budget(&self) -> Duration {
        Duration::from_millis(self.retry_budget_ms)
    }

    pub(crate) fn timeouts(&self) -> StreamTimeouts {
        StreamTimeouts {
            idle: Duration::from_millis(self.stream_idle_timeout_ms),
            whole: Duration::from_millis(self.stream_timeout_ms),
        }
    }

    /// Returns how to find calls in the text of this provider's models.
    pub(crate) fn call_reading(&self) -> CallReading {
        let url = self.base_url.as_deref().and_then(|url| Url::parse(url).ok());
        match self.tool_dialect {
            Some(dialect) => CallReading::Dialect(dialect),
            None if url.is_some_and(|url| is_private(&url)) => CallReading::Cautious,
            None => CallReading::HintOnly,
        }
    }

    /// Returns the problem if two settings contradict each other.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let dialect = self.tool_dialect.unwrap_or_default();
        match (dialect, self.wire_api) {
            (Dialect::Native, _) if self.tool_prompt => {
                Some("`tool_prompt` needs a `tool_dialect` to tell the tools in, such as `hermes`".to_owned())
            }
            (Dialect::Native, _) | (_, WireApi::Chat) => None,
            (_, wire) => Some(format!(
                "`tool_dialect = \"{}\"` needs `wire_api = \"chat\"`, and it is `{}`",
                dialect.name(),
                wire.name()
            )),
        }
    }

    /// Returns true for Azure's variant of the Responses API, which works only with stored answers.
    pub(crate) fn is_azure(&self) -> bool {
        const HOSTS: [&str; 6] = [
            "openai.azure.",
            "cognitiveservices.azure.",
            "aoai.azure.",
            "azure-api.",
            "azurefd.",
            "windows.net/openai",
        ];
        let url = self.base_url.as_deref().unwrap_or_default().to_ascii_lowercase();
        self.name.eq_ignore_ascii_case("azure") || HOSTS.iter().any(|host| url.contains(host))
    }
}

/// Method of finding calls in the text of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallReading {
    /// In the configured dialect.
    Dialect(Dialect),
    /// In any dialect, but only unambiguous calls: servers of local models often leave calls in the
    /// text.
    Cautious,
    /// Not at all; text that looks like a call causes a hint.
    HintOnly,
}

/// Returns true if a server is on this machine or in a private network.
fn is_private(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_unspecified()
        }
        // A name without dots is known only to this machine or its network.
        Err(_) => {
            !host.contains('.') || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end))
        }
    }
}

/// Protocol of a model server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireApi {
    /// OpenAI's Responses API.
    #[default]
    Responses,
    /// OpenAI's Chat Completions API, which most other servers speak.
    Chat,
    /// Anthropic's Messages API.
    Messages,
    /// Answers read from the file named by `script`; no server at all.
    Scripted,
}

impl WireApi {
    /// Returns the name used in configuration, in [`windlass_contract::model::ModelInfo`] and for
    /// items stored in their original JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Scripted => "scripted",
        }
    }
}

/// Text that debug output hides. Serializing writes it unchanged, because a configuration must
/// survive a round trip. Code that shows a configuration to a person must hide it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the text itself, to be sent and never shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// Returns the built-in providers by id.
pub fn presets() -> BTreeMap<String, Provider> {
    let served = |name: &str, wire_api, base_url: &str, env_key: Option<&str>| Provider {
        name: name.to_owned(),
        wire_api,
        base_url: Some(base_url.to_owned()),
        env_key: env_key.map(str::to_owned),
        ..Provider::default()
    };
    let (chat, responses) = (WireApi::Chat, WireApi::Responses);
    let scripted = Provider { name: "Script".to_owned(), wire_api: WireApi::Scripted, ..Provider::default() };
    let openai = served("OpenAI", responses, "https://api.openai.com/v1", Some("OPENAI_API_KEY"));
    let openrouter = served("OpenRouter", chat, "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY"));
    let hosted = |name: &str, base_url: &str, env_key: &str| served(name, chat, base_url, Some(env_key));
    let anthropic =
        served("Anthropic", WireApi::Messages, "https://api.anthropic.com/v1", Some("ANTHROPIC_API_KEY"));
    // The address has the name of the customer's own resource, so there is none here.
    let azure = Provider {
        name: "Azure".to_owned(),
        env_key: Some("AZURE_OPENAI_API_KEY".to_owned()),
        env_http_headers: [("api-key".to_owned(), "AZURE_OPENAI_API_KEY".to_owned())].into(),
        ..Provider::default()
    };
    let all = [
        ("anthropic", anthropic),
        ("azure", azure),
        ("deepseek", hosted("DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY")),
        (
            "gemini",
            hosted("Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
        ),
        ("groq", hosted("Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY")),
        ("mistral", hosted("Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY")),
        ("xai", hosted("xAI", "https://api.x.ai/v1", "XAI_API_KEY")),
        ("openai", openai),
        ("openrouter", openrouter),
        ("ollama", served("Ollama", chat, "http://localhost:11434/v1", None)),
        ("lmstudio", served("LM Studio", chat, "http://localhost:1234/v1", None)),
        ("llama.cpp", served("llama.cpp", chat, "http://localhost:8080/v1", None)),
        ("vllm", served("vLLM", chat, "http://localhost:8000/v1", None)),
        ("scripted", scripted),
    ];
    all.into_iter().map(|(id, provider)| (id.to_owned(), provider)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_table_is_a_provider_with_the_documented_defaults() {
        let provider: Provider = serde_json::from_value(json!({})).unwrap();
        assert_eq!(provider, Provider::default());
        assert_eq!(provider.wire_api, WireApi::Responses);
        assert_eq!((provider.request_max_retries, provider.stream_max_retries), (20, 5));
        assert_eq!(provider.retry_budget(), Duration::from_mins(2));
        let StreamTimeouts { idle, whole } = provider.timeouts();
        assert_eq!((idle, whole), (Duration::from_mins(5), Duration::from_mins(30)));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_lists_the_known_ones() {
        let error = serde_json::from_value::<Provider>(json!({"base_ulr": "x"})).unwrap_err().to_string();
        assert!(error.contains("unknown field `base_ulr`") && error.contains("`base_url`"), "{error}");
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let provider = Provider {
            experimental_bearer_token: Some("sk-hidden-1".into()),
            http_headers: [("api-key".to_owned(), "sk-hidden-2".into())].into(),
            query_params: [("key".to_owned(), "sk-hidden-3".into())].into(),
            ..Provider::default()
        };
        let shown = format!("{provider:?}");
        assert!(!shown.contains("hidden"), "{shown}");
        assert!(shown.contains("api-key"));
    }

    #[test]
    fn retries_are_capped() {
        let provider = Provider { request_max_retries: 5000, stream_max_retries: 101, ..Provider::default() };
        assert_eq!((provider.request_retries(), provider.stream_retries()), (100, 100));
    }

    #[test]
    fn a_dialect_needs_a_wire_that_has_text_and_a_prompt_needs_a_dialect() {
        let provider = |wire_api, tool_dialect, tool_prompt| Provider {
            wire_api,
            tool_dialect: Some(tool_dialect),
            tool_prompt,
            ..Provider::default()
        };
        assert_eq!(provider(WireApi::Chat, Dialect::Xml, true).contradiction(), None);
        assert_eq!(provider(WireApi::Responses, Dialect::Native, false).contradiction(), None);
        assert_eq!(
            provider(WireApi::Responses, Dialect::Xml, false).contradiction().unwrap(),
            "`tool_dialect = \"xml\"` needs `wire_api = \"chat\"`, and it is `responses`"
        );
        assert_eq!(
            provider(WireApi::Chat, Dialect::Native, true).contradiction().unwrap(),
            "`tool_prompt` needs a `tool_dialect` to tell the tools in, such as `hermes`"
        );
    }

    #[test]
    fn calls_in_the_text_of_local_servers_are_read_with_caution_unless_configured() {
        let at =
            |url: &str| Provider { base_url: Some(url.to_owned()), ..Provider::default() }.call_reading();
        for url in [
            "http://localhost:11434/v1",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:8080/v1",
            "http://192.168.1.7:8000/v1",
            "http://10.0.0.3/v1",
            "http://172.20.0.2/v1",
            "http://[fd00::1]/v1",
            "http://ollama:11434/v1",
            "http://box.local/v1",
            "http://host.docker.internal:11434/v1",
        ] {
            assert_eq!(at(url), CallReading::Cautious, "{url}");
        }
        for url in [
            "https://openrouter.ai/api/v1",
            "http://8.8.8.8/v1",
            "http://172.32.0.1/v1",
            "http://localhost.example.com",
        ] {
            assert_eq!(at(url), CallReading::HintOnly, "{url}");
        }
        let told = Provider { tool_dialect: Some(Dialect::Native), ..Provider::default() };
        assert_eq!(told.call_reading(), CallReading::Dialect(Dialect::Native));
    }

    #[test]
    fn every_dialect_has_the_name_it_is_configured_by() {
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).unwrap(), json!(dialect.name()));
        }
    }

    #[test]
    fn azure_is_recognised_by_name_and_by_address() {
        let at = |url: &str| Provider { base_url: Some(url.to_owned()), ..Provider::default() };
        assert!(at("https://me.openai.azure.com/openai").is_azure());
        assert!(at("https://x.windows.net/openai").is_azure());
        assert!(Provider { name: "AZURE".to_owned(), ..Provider::default() }.is_azure());
        assert!(!at("https://api.openai.com/v1").is_azure());
    }

    #[test]
    fn every_preset_survives_a_configuration_file() {
        let presets = presets();
        let text = serde_json::to_string(&presets).unwrap();
        assert_eq!(serde_json::from_str::<BTreeMap<String, Provider>>(&text).unwrap(), presets);
        let ids: Vec<_> = presets.keys().map(String::as_str).collect();
        let local = ["llama.cpp", "lmstudio", "ollama", "vllm"];
        assert!(ids.iter().all(|id| presets[*id].is_on_this_machine() == local.contains(id)), "{ids:?}");
        assert_eq!(
            ids,
            [
                "anthropic",
                "azure",
                "deepseek",
                "gemini",
                "groq",
                "llama.cpp",
                "lmstudio",
                "mistral",
                "ollama",
                "openai",
                "openrouter",
                "scripted",
                "vllm",
                "xai"
            ]
        );
    }
}
