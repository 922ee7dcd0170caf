//! The client of the MCP conformance suite, made of the pool and the logins of this crate.
//!
//! `conformance_client URL` lists the tools of a server and calls them. It logs in when the server
//! demands it: the suite's authorization servers redirect at once, so the address is opened with
//! one request. `tests/real/mcp/conformance.sh` runs the suite.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture,
    elicitation::{Elicitation, ElicitationAnswer, ElicitationForm, Elicitor},
    host::HostError,
    remote::{LaunchedServer, ServerCommand, ServerLauncher},
};
use windlass_mcp::{
    config::McpServerConfig,
    credentials::SecretText,
    definition::RemoteToolDefinition,
    oauth::{LoginSettings, OAuthLogin, TokenSource},
    pool::{PoolSettings, RemoteError, RemoteToolCall, ServerPool},
    result::RemoteArguments,
};

/// Name of the server under test.
const SERVER: &str = "suite";
/// Address of the client metadata document that the suite expects.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// Maximum number of logins. A server that demands more will never be content.
const MAX_LOGINS: usize = 3;
/// Time after which an authorization server must have sent the browser back.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);

/// Settings of a scenario.
#[derive(Default, Deserialize)]
struct ScenarioContext {
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default, rename = "toolCalls")]
    tool_calls: Vec<ScenarioCall>,
}

/// A call that a scenario asks for.
#[derive(Deserialize)]
struct ScenarioCall {
    name: String,
    #[serde(default)]
    arguments: RemoteArguments,
}

/// The client of one scenario.
struct ScenarioClient {
    pool: Arc<ServerPool>,
    tokens: Arc<TokenSource>,
    config: McpServerConfig,
    login: LoginSettings,
    logins: usize,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("usage: conformance_client URL")?;
    let context: ScenarioContext = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_) => ScenarioContext::default(),
    };
    let home = tempfile::tempdir()?;
    let mut client = ScenarioClient::new(url, &context, home.path());
    let result = client.run(context.tool_calls).await;
    client.pool.shut_down().await;
    result
}

impl ScenarioClient {
    fn new(url: String, context: &ScenarioContext, home: &Path) -> Self {
        let oauth_client_id = context.client_id.clone();
        let config = McpServerConfig { url: Some(url), oauth_client_id, ..McpServerConfig::default() };
        let servers = BTreeMap::from([(SERVER.to_owned(), config.clone())]);
        let tokens = Arc::new(TokenSource::new(home, &servers));
        let pool = ServerPool::new(PoolSettings {
            servers,
            environment: BTreeMap::new(),
            directory: Some(home.to_owned()),
            workspace: home.to_owned(),
            launcher: Arc::new(NoLauncher),
            tokens: Some(tokens.clone()),
        });
        let login = LoginSettings {
            client_metadata_url: Some(CLIENT_DOCUMENT.to_owned()),
            client_secret: context.client_secret.clone().map(SecretText::from),
            person_limit: LOGIN_TIMEOUT,
            ..LoginSettings::new(home.to_owned())
        };
        Self { pool, tokens, config, login, logins: 0 }
    }

    /// Lists the tools and makes the calls of the scenario, or one call of each tool.
    async fn run(&mut self, wanted: Vec<ScenarioCall>) -> Result<(), Box<dyn Error>> {
        let listing = loop {
            match self.pool.start(SERVER).await {
                Ok(listing) => break listing,
                Err(error) => self.log_in_after(error).await?,
            }
        };
        let calls = if wanted.is_empty() {
            let with_arguments = listing.tools.iter().map(|tool| ScenarioCall {
                name: tool.name.clone(),
                arguments: plain_arguments(&tool.input_schema, &listing.tools),
            });
            with_arguments.collect()
        } else {
            wanted
        };
        for call in calls {
            while let Err(error) = self.call(&call).await {
                if matches!(error, RemoteError::NeedsLogin { .. }) {
                    self.log_in_after(error).await?;
                } else {
                    // Some servers of the suite fail on purpose; the suite judges the requests.
                    report(&error);
                    break;
                }
            }
        }
        Ok(())
    }

    async fn call(&self, call: &ScenarioCall) -> Result<(), RemoteError> {
        let request = RemoteToolCall {
            server: SERVER,
            tool: &call.name,
            arguments: &call.arguments,
            progress: &|_| (),
            elicitor: Some(Arc::new(DefaultAnswers)),
            cancel: &CancellationToken::new(),
        };
        self.pool.call(request).await.map(|_| ())
    }

    /// Logs in if that is what the server demands, without a person.
    async fn log_in_after(&mut self, error: RemoteError) -> Result<(), Box<dyn Error>> {
        if !matches!(error, RemoteError::NeedsLogin { .. }) || self.logins == MAX_LOGINS {
            return Err(error.into());
        }
        self.logins += 1;
        let challenge = self.tokens.last_challenge(SERVER);
        let login = OAuthLogin::start(SERVER, &self.config, challenge.as_deref(), &self.login);
        let mut login = login.await?;
        let redirect = open(login.address()).await?;
        login.finish(async { redirect }).await?;
        Ok(())
    }
}

/// Opens the address of a login, and returns the address to which the browser is sent.
async fn open(address: &str) -> Result<String, Box<dyn Error>> {
    let browser = reqwest::Client::builder()
        .no_proxy()
        .timeout(LOGIN_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let answer = browser.get(address).send().await?;
    let location = answer.headers().get("location").ok_or("the login page has not redirected")?;
    Ok(location.to_str()?.to_owned())
}

/// Makes the simplest arguments that a schema accepts: its required fields. A field `schema` gets
/// the schema of the first tool, which a scenario compares with the one it sent.
fn plain_arguments(schema: &RemoteArguments, tools: &[RemoteToolDefinition]) -> RemoteArguments {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let fields = properties.into_iter().filter(|(name, _)| required.contains(name.as_str()));
    fields
        .map(|(name, schema)| match tools.first().filter(|_| name == "schema") {
            Some(first) => (name, Value::Object(first.input_schema.clone())),
            None => (name, plain_value(&schema)),
        })
        .collect()
}

fn plain_value(schema: &Value) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("number") => json!(1.5),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => json!("text"),
    }
}

#[expect(clippy::print_stderr, reason = "the suite shows it when a scenario fails")]
fn report(error: &RemoteError) {
    eprintln!("{error}");
}

/// Accepts every form with its default values.
struct DefaultAnswers;

impl Elicitor for DefaultAnswers {
    fn elicit<'a>(&'a self, question: &'a Elicitation) -> BoxFuture<'a, ElicitationAnswer> {
        let ElicitationForm::Fields { schema } = &question.form else {
            return Box::pin(async { ElicitationAnswer::Decline });
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let defaults: Map<String, Value> = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
            .collect();
        Box::pin(async move { ElicitationAnswer::Accept(Value::Object(defaults)) })
    }
}

/// Starts nothing: the suite has only HTTP servers.
struct NoLauncher;

impl ServerLauncher for NoLauncher {
    fn launch<'a>(&'a self, _command: &'a ServerCommand) -> BoxFuture<'a, Result<LaunchedServer, HostError>> {
        Box::pin(async { Err(HostError::EmptyCommand) })
    }
}
