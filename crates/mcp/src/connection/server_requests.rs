//! Requests of a server: questions to a person, roots, and everything that is declined.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ProtocolVersion,
        TASKS_EXTENSION_ID, UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, RequestContext},
};
use serde_json::Value;
use windlass_contract::elicitation::{Asker, Elicitation, ElicitationAnswer, ElicitationForm};

use super::running_calls::{InFlightCall, RunningCalls};
use crate::untrusted_text::{bounded_text, visible_line, visible_text};

/// Maximum size of a question.
const MAX_QUESTION: usize = 4096;
/// Maximum size of the schema of an answer.
const MAX_FORM: usize = 64 * 1024;
/// Maximum length of an address.
const MAX_URL: usize = 2048;

/// Answers the requests of one server.
#[derive(Clone)]
pub(crate) struct ServerRequests {
    /// Name of the server in the configuration.
    pub(crate) server: String,
    /// The calls that run.
    pub(crate) calls: Arc<RunningCalls>,
    /// The root that old servers ask for.
    pub(crate) workspace: PathBuf,
    /// Version that an `initialize` offers.
    pub(crate) offered_version: ProtocolVersion,
}

impl ServerRequests {
    /// Asks a person on behalf of a call. Declines if there is nobody to ask, or after too many
    /// questions.
    pub(crate) async fn ask(&self, call: &InFlightCall, question: ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let (Some(elicitor), Some(question)) = (&call.elicitor, self.question(question)) else {
            return declined;
        };
        if !call.may_ask() {
            return declined;
        }
        let Ok(_turn) = call.asking.acquire().await else { return declined };
        let _waiting = PersonWait::new(call);
        match elicitor.elicit(&question).await {
            ElicitationAnswer::Accept(content) => {
                let accepted = ElicitResult::new(ElicitationAction::Accept);
                match question.form {
                    ElicitationForm::Fields { .. } => accepted.with_content(content),
                    ElicitationForm::Url { .. } | ElicitationForm::Choices { .. } => accepted,
                }
            }
            ElicitationAnswer::Decline => declined,
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Returns the workspace as the only root.
    #[expect(deprecated, reason = "servers before 2026-07-28 ask for roots")]
    pub(crate) fn roots(&self) -> rmcp::model::ListRootsResult {
        let name = self.workspace.file_name().map(|name| name.to_string_lossy().into_owned());
        let address = file_address(&self.workspace);
        let root = rmcp::model::Root::new(address).with_name(name.unwrap_or_default());
        rmcp::model::ListRootsResult::new(vec![root])
    }

    /// Returns a question with its texts cleaned; `None` if it cannot be asked.
    fn question(&self, params: ElicitRequestParams) -> Option<Elicitation> {
        let (message, form) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).ok()?;
                let is_small = schema.to_string().len() <= MAX_FORM;
                (message, is_small.then(|| ElicitationForm::Fields { schema: cleaned(schema) })?)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (message, is_web_address(&url).then_some(ElicitationForm::Url { url })?)
            }
            _ => return None,
        };
        let message = bounded_text(&visible_text(&message), MAX_QUESTION);
        Some(Elicitation { asker: Asker::Server(self.server.clone()), message, form })
    }
}

/// Counts a person who is being asked; the time limit of the call pauses.
struct PersonWait<'a>(&'a InFlightCall);

impl<'a> PersonWait<'a> {
    fn new(call: &'a InFlightCall) -> Self {
        call.waiting_for_person.send_modify(|count| *count += 1);
        Self(call)
    }
}

impl Drop for PersonWait<'_> {
    fn drop(&mut self) {
        self.0.waiting_for_person.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl ClientHandler for ServerRequests {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let Some(call) = self.calls.asking_call(origin) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        tokio::select! {
            answer = self.ask(&call, request) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    #[expect(deprecated, reason = "servers before 2026-07-28 ask for roots")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    fn get_info(&self) -> ClientConfig {
        let info = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities(), info).with_protocol_version(self.offered_version.clone())
    }
}

fn capabilities() -> ClientCapabilities {
    let elicitation = ElicitationCapability::new()
        .with_form(FormElicitationCapability::new())
        .with_url(UrlElicitationCapability::new());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(elicitation);
    let tasks = (TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new());
    capabilities.extensions = Some([tasks].into_iter().collect());
    capabilities.roots = Some(rmcp::model::RootsCapabilities::default());
    capabilities
}

/// Returns a value with every text and every name of a field cleaned.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_text(&text)),
        Value::Array(values) => values.into_iter().map(cleaned).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (visible_line(&name, MAX_QUESTION), cleaned(value)))
            .collect(),
        other => other,
    }
}

/// Returns true for an address that a person may be sent to.
fn is_web_address(url: &str) -> bool {
    let is_visible = url.is_ascii() && visible_line(url, MAX_URL) == url;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    is_visible && rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Returns the `file` address of an absolute path.
fn file_address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            address.push(char::from(*byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requests() -> ServerRequests {
        ServerRequests {
            server: "s".into(),
            calls: Arc::default(),
            workspace: "/home/a b".into(),
            offered_version: ProtocolVersion::LATEST_WITH_INITIALIZE,
        }
    }

    #[test]
    fn the_texts_of_a_question_are_cleaned() {
        let params = serde_json::from_value(json!({
            "mode": "form", "message": "Your\u{1b}[1m name\u{202e}?",
            "requestedSchema": {"type": "object", "properties": {
                "name": {"type": "string", "title": "Na\u{7}me"}}},
        }));
        let question = requests().question(params.unwrap()).unwrap();
        assert_eq!(question.message, "Your[1m name?");
        let ElicitationForm::Fields { schema } = question.form else { panic!("a form") };
        assert_eq!(schema["properties"]["name"]["title"], "Name");
    }

    #[test]
    fn only_web_addresses_are_shown() {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "https://a/\u{202e}b", "x"] {
            let params = json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
            assert_eq!(requests().question(serde_json::from_value(params).unwrap()), None, "{url}");
        }
        let params = json!({"mode": "url", "message": "m", "url": "https://a.test/b", "elicitationId": "1"});
        assert!(requests().question(serde_json::from_value(params).unwrap()).is_some());
    }

    #[tokio::test]
    async fn a_question_without_a_person_is_declined() {
        let params = json!({"mode": "url", "message": "m", "url": "https://a.test/b", "elicitationId": "1"});
        let question = serde_json::from_value(params).unwrap();
        let answer = requests().ask(&InFlightCall::new(None), question).await;
        assert_eq!(answer.action, ElicitationAction::Decline);
    }

    #[test]
    #[expect(deprecated, reason = "servers before 2026-07-28 ask for roots")]
    fn the_workspace_is_the_root() {
        assert_eq!(requests().roots().roots[0].uri, "file:///home/a%20b");
    }
}
