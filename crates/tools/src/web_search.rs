//! `web_search`: a search that the model's server performs. Nothing runs here.

use std::sync::Arc;

use windlass_contract::{
    AnyTool, Input, Meta, ParsedCall, ToolError, ToolName, ToolSpec,
    meta::Category,
    spec::{SpecKind, WebSearch},
};
use windlass_schema::SchemaError;

/// Makes the tool.
pub(crate) fn web_search(reach: WebSearch) -> Arc<dyn AnyTool> {
    Arc::new(HostedWebSearch(reach))
}

struct HostedWebSearch(WebSearch);

impl AnyTool for HostedWebSearch {
    fn name(&self) -> ToolName {
        "web_search".into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let description = "Search the web; done by the model's server.".to_owned();
        Ok(ToolSpec { name: self.name(), description, kind: SpecKind::WebSearch(self.0) })
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Web,
            requests: [
                "look it up on the internet",
                "what is the latest version of Python",
                "search the web for this error message",
                "find recent news about Rust",
                "google it",
                "在网上搜索",
                "上网查一下最新的消息",
                "查找相关网页",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec!["runs on the model's server, if that offers it".to_owned()],
            side_effects: vec!["what is searched for leaves this machine".to_owned()],
            returns: "what was found, to the model alone".to_owned(),
            parallel: false,
            ..Meta::default()
        }
    }

    fn prepare(self: Arc<Self>, _input: &Input) -> Result<ParsedCall, ToolError> {
        Err(ToolError::bad_input(
            "web_search runs on the model's server and cannot be called here; if the server offers no search, go on \
             without it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_reaches_us_is_told_that_there_is_nothing_to_run() {
        let tool = web_search(WebSearch::Cached);
        assert_eq!(tool.spec().unwrap().kind, SpecKind::WebSearch(WebSearch::Cached));
        let error = tool.prepare(&Input::Json("{}".into())).err().unwrap();
        assert!(error.message.starts_with("web_search runs on the model's server"));
    }
}
