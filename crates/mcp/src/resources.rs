//! The tools that list and read resources.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_contract::{
    AnyTool, BoxFuture, Content, Cx, Effects, Host, Input, Output, ParsedCall, Ready, ToolError, ToolName,
    ToolSpec,
    outcome::Facts,
    remote::{RemoteCall, ToolHints},
    report::RemoteReport,
    spec::SpecKind,
};
use windlass_schema::{Schema, SchemaError};

use crate::{
    output::ImageFitter,
    pool::{RemoteError, ServerPool},
    result::{RemotePage, RemoteResource, RemoteResourceContent},
    untrusted_text::{bounded_text, visible_text},
};

mod all_servers;

/// Maximum size of Base64 that a model is given as text.
const MAX_BLOB_BYTES: usize = 2 * 1024;
/// Maximum size of an error for the model.
const MAX_ERROR_BYTES: usize = 4 * 1024;

/// Returns the three tools for the resources of the servers of a pool.
pub fn resource_tools(pool: &Arc<ServerPool>, images: &ImageFitter) -> Vec<Arc<dyn AnyTool>> {
    let tool = |request| {
        let (pool, images) = (Arc::clone(pool), images.clone());
        Arc::new(ResourceTool { request, pool, images }) as Arc<dyn AnyTool>
    };
    [ResourceRequest::List, ResourceRequest::Templates, ResourceRequest::Read].map(tool).into()
}

/// A request about resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResourceRequest {
    List,
    Templates,
    Read,
}

impl ResourceRequest {
    fn tool_name(self) -> &'static str {
        match self {
            Self::List => "list_mcp_resources",
            Self::Templates => "list_mcp_resource_templates",
            Self::Read => "read_mcp_resource",
        }
    }

    /// Returns the name of the request in the protocol.
    fn method(self) -> &'static str {
        match self {
            Self::List => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Read => "resources/read",
        }
    }

    /// Returns the member of the output that holds the entries.
    fn member(self) -> &'static str {
        match self {
            Self::List => "resources",
            Self::Templates => "resourceTemplates",
            Self::Read => "contents",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::List => {
                "List the resources that MCP servers share: files, database schemas, and other context. Prefer \
                 them to a web search where one fits."
            }
            Self::Templates => {
                "List the templates for addresses of resources that MCP servers share. Fill one in and read it \
                 with read_mcp_resource."
            }
            Self::Read => "Read a resource of an MCP server, by the server and address that a list gave.",
        }
    }

    fn schema(self) -> Result<Schema, SchemaError> {
        let text = |description: &str| json!({"type": "string", "description": description});
        let (properties, required) = match self {
            Self::List | Self::Templates => {
                let server = text("Name of the server. Default: all servers.");
                let cursor = text("nextCursor of the last page; only with the same server.");
                (json!({"server": server, "cursor": cursor}), json!([]))
            }
            Self::Read => {
                let server = text("Name of the server.");
                (json!({"server": server, "uri": text("Address of the resource.")}), json!(["server", "uri"]))
            }
        };
        Schema::new(&json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }))
    }

    fn failed(self, error: &str) -> ToolError {
        let error = bounded_text(&visible_text(error), MAX_ERROR_BYTES);
        ToolError::failed(format!("{} failed: {error}", self.method()))
    }

    /// Asks a server for one page.
    async fn page(
        self,
        pool: &ServerPool,
        server: &str,
        cursor: Option<String>,
    ) -> Result<RemotePage<RemoteResource>, RemoteError> {
        match self {
            Self::List => pool.list_resources(server, cursor).await,
            Self::Templates | Self::Read => pool.list_resource_templates(server, cursor).await,
        }
    }

    /// Returns an entry of a list as data.
    fn entry(self, server: &str, resource: &RemoteResource) -> Value {
        let mut entry = json!(resource);
        if let Some(members) = entry.as_object_mut() {
            if let (Self::Templates, Some(uri)) = (self, members.remove("uri")) {
                members.insert("uriTemplate".to_owned(), uri);
            } else {
                members.insert("uri".to_owned(), json!(resource.uri));
            }
            members.insert("server".to_owned(), json!(server));
        }
        entry
    }
}

/// One of the three tools.
struct ResourceTool {
    request: ResourceRequest,
    pool: Arc<ServerPool>,
    images: ImageFitter,
}

impl fmt::Debug for ResourceTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTool").field("request", &self.request).finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Deserialize)]
struct ResourceArguments {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

impl AnyTool for ResourceTool {
    fn name(&self) -> ToolName {
        self.request.tool_name().into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let kind = SpecKind::Function { parameters: self.request.schema()? };
        Ok(ToolSpec { name: self.name(), description: self.request.description().to_owned(), kind })
    }

    fn meta(&self) -> windlass_contract::Meta {
        windlass_contract::Meta::default()
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        let ResourceArguments { server, cursor, uri } = input.parse(&self.name())?;
        let given =
            |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (server, cursor, uri) = (given(server), given(cursor), given(uri));
        let missing = |name: &str| ToolError::bad_input(format!("{name} must be provided"));
        let asks = match (self.request, server, cursor, uri) {
            (ResourceRequest::Read, None, ..) => return Err(missing("server")),
            (ResourceRequest::Read, Some(_), _, None) => return Err(missing("uri")),
            (ResourceRequest::Read, Some(server), _, Some(uri)) => AskedResources::One { server, uri },
            (_, Some(server), cursor, _) => AskedResources::Page { server, cursor },
            (_, None, None, _) => AskedResources::All,
            (_, None, Some(_), _) => {
                let problem = "cursor can only be used when a server is specified";
                return Err(ToolError::bad_input(problem));
            }
        };
        Ok(ParsedCall::runs(ResourceCall { tool: self, asks }))
    }
}

/// The resources that a call asks for.
enum AskedResources {
    All,
    Page { server: String, cursor: Option<String> },
    One { server: String, uri: String },
}

struct ResourceCall {
    tool: Arc<ResourceTool>,
    asks: AskedResources,
}

impl Ready for ResourceCall {
    fn effects(&self) -> Effects {
        match &self.asks {
            // Nothing that the model wrote reaches a server.
            AskedResources::All | AskedResources::Page { cursor: None, .. } => Effects::none(),
            AskedResources::Page { server, .. } | AskedResources::One { server, .. } => self.remote(server),
        }
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
                output = self.answer(&*cx.host) => output,
            }
        })
    }
}

impl ResourceCall {
    /// Returns the effect of sending a text of the model to a server.
    fn remote(&self, server: &str) -> Effects {
        let Some((_, config)) = self.tool.pool.servers().find(|(name, _)| *name == server) else {
            return Effects::none();
        };
        let method = self.tool.request.method();
        Effects::remote(RemoteCall {
            server: server.to_owned(),
            tool: method.to_owned(),
            reach: config.reach(),
            hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
            trusted: config.trusted.unwrap_or(false),
            approval: config.approval_mode(method),
        })
    }

    async fn answer(&self, host: &dyn Host) -> Result<Output, ToolError> {
        let ResourceTool { request, pool, .. } = &*self.tool;
        let failed = |error: RemoteError| request.failed(&error.to_string());
        let mut images = Vec::new();
        let answer = match &self.asks {
            AskedResources::All => all_servers::list(*request, pool).await,
            AskedResources::Page { server, cursor } => {
                let page = request.page(pool, server, cursor.clone()).await.map_err(failed)?;
                if page.next_cursor.is_some() && page.next_cursor == *cursor {
                    return Err(request.failed("the server repeats a cursor"));
                }
                let entries: Vec<_> = page.entries.iter().map(|entry| request.entry(server, entry)).collect();
                let mut answer = json!({"server": server, request.member(): entries});
                if let Some(next) = page.next_cursor {
                    answer["nextCursor"] = json!(next);
                }
                answer
            }
            AskedResources::One { server, uri } => {
                let contents = pool.read_resource(server, uri).await.map_err(failed)?;
                let contents = self.shown(contents, &mut images).await;
                json!({"server": server, "uri": uri, "contents": contents})
            }
        };
        let text = answer.to_string();
        let output_bytes = text.len() as u64;
        let whole = host.keep_output(text.clone().into_bytes()).await;
        let facts = Facts::Remote(RemoteReport { failed: false, output_bytes, whole });
        let content = std::iter::once(Content::Text(text)).chain(images).collect();
        Ok(Output { content, facts, ..Output::default() })
    }

    /// Replaces images by notes, and adds them to the content that follows.
    async fn shown(
        &self,
        contents: Vec<RemoteResourceContent>,
        images: &mut Vec<Content>,
    ) -> Vec<RemoteResourceContent> {
        let mut shown = Vec::new();
        for mut content in contents {
            if let Some(blob) = content.blob.take() {
                let is_image = content.mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/"));
                let image = if is_image { self.tool.images.fit(blob.clone()).await.ok() } else { None };
                content.blob = Some(match image {
                    Some(_) => "(shown as an image)".to_owned(),
                    None if blob.len() > MAX_BLOB_BYTES => {
                        format!("(about {} bytes are not shown)", blob.len() / 4 * 3)
                    }
                    None => blob,
                });
                images.extend(image.map(Content::Image));
            }
            shown.push(content);
        }
        shown
    }
}
