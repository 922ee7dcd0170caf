//! Requests for resources and prompts.

use std::time::Duration;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};

use super::{ServerConnection, calling::RoundInput, conversion};
use crate::{
    pool::RemoteError,
    result::{
        RemoteArguments, RemotePage, RemotePrompt, RemotePromptMessage, RemoteResource, RemoteResourceContent,
    },
};

/// Maximum number of pages of the list of prompts.
const MAX_PROMPT_PAGES: usize = 20;
/// Maximum number of prompts.
const MAX_PROMPTS: usize = 1000;

impl ServerConnection {
    pub(crate) async fn list_resources(
        &self,
        cursor: Option<String>,
        limit: Duration,
    ) -> Result<RemotePage<RemoteResource>, RemoteError> {
        let request = |_: RoundInput| {
            let params = page_params(cursor.clone());
            ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() })
        };
        match self.ask(request, limit).await? {
            ServerResult::ListResourcesResult(result) => Ok(RemotePage {
                entries: result.resources.into_iter().map(conversion::resource).collect(),
                next_cursor: result.next_cursor,
            }),
            _ => Err(self.bad_answer("the answer is no list of resources")),
        }
    }

    pub(crate) async fn list_resource_templates(
        &self,
        cursor: Option<String>,
        limit: Duration,
    ) -> Result<RemotePage<RemoteResource>, RemoteError> {
        let request = |_: RoundInput| {
            let params = page_params(cursor.clone());
            let request = ListResourceTemplatesRequest { params, ..Default::default() };
            ClientRequest::ListResourceTemplatesRequest(request)
        };
        match self.ask(request, limit).await? {
            ServerResult::ListResourceTemplatesResult(result) => Ok(RemotePage {
                entries: result.resource_templates.into_iter().map(conversion::resource_template).collect(),
                next_cursor: result.next_cursor,
            }),
            _ => Err(self.bad_answer("the answer is no list of resource templates")),
        }
    }

    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        limit: Duration,
    ) -> Result<Vec<RemoteResourceContent>, RemoteError> {
        let request = |input: RoundInput| {
            let mut params = ReadResourceRequestParams::new(uri);
            params.input_responses = input.responses;
            params.request_state = input.state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        match self.ask(request, limit).await? {
            ServerResult::ReadResourceResult(result) => {
                Ok(result.contents.into_iter().map(conversion::resource_content).collect())
            }
            _ => Err(self.bad_answer("the answer is no resource")),
        }
    }

    pub(crate) async fn list_prompts(&self, limit: Duration) -> Result<Vec<RemotePrompt>, RemoteError> {
        let mut prompts = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PROMPT_PAGES {
            let request = |_: RoundInput| {
                let params = page_params(cursor.clone());
                ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() })
            };
            match self.ask(request, limit).await? {
                ServerResult::ListPromptsResult(result) => {
                    prompts.extend(result.prompts.into_iter().map(conversion::prompt));
                    prompts.truncate(MAX_PROMPTS);
                    cursor = result.next_cursor.filter(|cursor| !cursor.is_empty());
                }
                _ => return Err(self.bad_answer("the answer is no list of prompts")),
            }
            if cursor.is_none() || prompts.len() == MAX_PROMPTS {
                return Ok(prompts);
            }
        }
        Err(self.bad_answer(&format!("its list of prompts has more than {MAX_PROMPT_PAGES} pages")))
    }

    pub(crate) async fn get_prompt(
        &self,
        prompt: &str,
        arguments: &RemoteArguments,
        limit: Duration,
    ) -> Result<Vec<RemotePromptMessage>, RemoteError> {
        let request = |input: RoundInput| {
            let mut params = GetPromptRequestParams::new(prompt);
            params.arguments = Some(arguments.clone());
            params.input_responses = input.responses;
            params.request_state = input.state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        match self.ask(request, limit).await? {
            ServerResult::GetPromptResult(result) => Ok(conversion::prompt_messages(result)),
            _ => Err(self.bad_answer("the answer is no prompt")),
        }
    }
}

fn page_params(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}
