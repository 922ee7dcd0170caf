//! Our server, plus the capabilities that only the fixture has.
#![expect(deprecated, reason = "the suite tests sampling and logging of versions before 2026-07-28")]

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
        ContentBlock, CreateMessageRequestParams, GetPromptRequestParams, GetPromptResponse,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        LoggingMessageNotificationParam, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, RequestStateCodec, SamplingMessage, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;
use windlass_mcp::serve::ToolServer;

use crate::{
    input_required::{InputRound, RoundEnd, TOOLS},
    prompts,
    resources::{self, parsed},
};

/// Pause between messages.
const STEP: Duration = Duration::from_millis(50);
/// Tools that need a capability of the client that our server does not use.
const LEGACY_TOOLS: [&str; 4] =
    ["test_logging_tool", "test_missing_capability", "test_sampling", "test_tool_with_logging"];

/// The server under test.
#[derive(Debug, Clone)]
pub(crate) struct FixtureHandler {
    tools: ToolServer,
    codec: Arc<RequestStateCodec>,
}

impl FixtureHandler {
    /// Creates the server around our tools.
    pub(crate) fn new(tools: ToolServer) -> Self {
        let codec = RequestStateCodec::new(b"a key for tests, nothing more than that".to_vec());
        Self { tools, codec: Arc::new(codec) }
    }

    /// Returns the server for another connection.
    pub(crate) fn for_connection(&self) -> Self {
        Self { tools: self.tools.for_connection(), codec: Arc::clone(&self.codec) }
    }

    fn round<'a>(
        &'a self,
        context: &RequestContext<RoleServer>,
        state: Option<&'a str>,
        answers: Option<&'a std::collections::BTreeMap<String, serde_json::Value>>,
    ) -> InputRound<'a> {
        InputRound { codec: &self.codec, capabilities: context.client_capabilities(), state, answers }
    }
}

impl ServerHandler for FixtureHandler {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.tools.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.tools.list_tools(request, context).await?;
        listed.tools.extend(TOOLS.into_iter().chain(LEGACY_TOOLS).filter_map(|name| self.get_tool(name)));
        listed.tools.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        if !TOOLS.contains(&name) && !LEGACY_TOOLS.contains(&name) {
            return self.tools.get_tool(name);
        }
        let properties =
            if name == "test_sampling" { json!({"prompt": {"type": "string"}}) } else { json!({}) };
        let schema = json!({"type": "object", "properties": properties});
        parsed(json!({"name": name, "description": "A tool for tests.", "inputSchema": schema})).ok()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "test_tool_with_logging" | "test_logging_tool" => logged(&context).await,
            "test_sampling" => sampled(&request, &context).await,
            "test_missing_capability" => {
                let needed = parsed(json!({"sampling": {}}))?;
                let declared =
                    context.client_capabilities().is_some_and(|declared| declared.sampling.is_some());
                if declared {
                    Ok(text("the capability is there"))
                } else {
                    Err(ErrorData::missing_required_client_capability(needed))
                }
            }
            name if TOOLS.contains(&name) => {
                let state = request.request_state.as_deref();
                match self.round(&context, state, request.input_responses.as_ref()).run(name)? {
                    RoundEnd::Text(result) => Ok(text(&result)),
                    RoundEnd::InputRequired(required) => Ok(required.into()),
                }
            }
            _ => self.tools.call_tool(request, context).await,
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.tools.accepted_subscription_filter(requested)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.tools.listen(subscription).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list()
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates()
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list()
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "test_input_required_result_prompt" {
            return prompts::get(&request).map(Into::into);
        }
        let state = request.request_state.as_deref();
        match self.round(&context, state, request.input_responses.as_ref()).run(&request.name)? {
            RoundEnd::Text(result) => {
                let result = json!({"resultType": "complete", "messages": [prompts::message(&result)]});
                Ok(parsed::<rmcp::model::GetPromptResult>(result)?.into())
            }
            RoundEnd::InputRequired(required) => Ok(required.into()),
        }
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        parsed(
            json!({"resultType": "complete", "completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": false}}),
        )
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

async fn logged(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    // Since 2026-07-28 a request says itself if it wants messages; no scenario does.
    let version = context.protocol_version();
    if version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
        return Ok(text("no messages were asked for"));
    }
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
        let sent = context.peer.notify_logging_message(params).await;
        sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        tokio::time::sleep(STEP).await;
    }
    Ok(text("three messages were logged"))
}

async fn sampled(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let prompt = arguments.get("prompt").and_then(|prompt| prompt.as_str()).unwrap_or_default();
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let sampled = context.peer.create_message(params).await;
    let sampled = sampled.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(&sampled.message.content).unwrap_or_default();
    let reply = answer.get("text").and_then(|text| text.as_str()).unwrap_or_default();
    Ok(text(&format!("LLM response: {reply}")))
}
