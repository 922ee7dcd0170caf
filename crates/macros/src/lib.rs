//! The `#[tool]` attribute, which turns an async function into a tool.

mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Turns an async function into a tool.
///
/// ```
/// # extern crate self as windlass;
/// # pub mod __macro { pub use {schemars, serde, windlass_contract::*}; }
/// # use std::path::PathBuf;
/// # use windlass_contract::{Cx, Output, ToolError};
/// # use windlass_macros::tool;
/// /// Count the lines of a text file. Not for binary files.
/// #[tool(reads(path), category = Files, returns = "the number", example("How long is a.txt?", r#"{"path": "a.txt"}"#))]
/// async fn count_lines(
///     /// The file, absolute or relative to the workspace.
///     path: PathBuf,
///     /// Count empty lines, too. Default: false.
///     empty: Option<bool>,
///     cx: &Cx,
/// ) -> Result<Output, ToolError> {
///     # let _ = (path, empty, cx);
///     // …
///     # Ok("12".into())
/// }
/// # fn main() {
///
/// let tool = count_lines();
/// assert_eq!(tool.name().as_str(), "count_lines");
/// # }
/// ```
///
/// The result is a function without parameters that returns the tool, an `Arc<dyn AnyTool>`. The
/// doc comment is the description that the model reads.
///
/// The parameters are those of the tool. Their types must be `Deserialize + JsonSchema + Clone`.
/// Their doc comments and attributes (such as `#[serde(default)]`) are kept. A parameter of type
/// `&Cx` or `Cx` is not part of the schema; it receives the context of the call.
///
/// One of these declarations of effects is required:
///
/// - `pure`: no effects.
/// - any of `reads(parameter, …)`, `writes(parameter, …)` and `network`. The named parameters are
///   paths, or an `Option` or `Vec` of paths.
/// - `effects = function`, which receives a reference to each parameter, in order, and returns
///   `Effects`.
///
/// These options may be added; those marked with * any number of times:
///
/// - `name = "…"`: the name for the model. Default: the name of the function.
/// - `alias = "…"` *: another name that the tool accepts.
/// - `category = Files`: the section of a list that the tool belongs to.
/// - `parallel = false`: calls of this tool never overlap with other calls.
/// - `example("request", r#"{"path": "a.txt"}"#)` *: a call that shows the use of the tool. The
///   input is checked when the tool is registered.
/// - `constraint = "…"` *: a condition for the tool to work.
/// - `side_effect = "…"` *: a change that the tool may make, in words for people. Decisions depend
///   only on the declared effects, never on this text.
/// - `returns = "…"`: the result of the tool.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(options.into(), function.into()).into()
}
