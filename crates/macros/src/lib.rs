//! The `#[tool]` attribute: a tool from an async function.

mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Makes a tool from an async function.
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
///     /// Whether empty lines count, too. Default: false.
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
/// The function becomes one without parameters that makes the tool, an `Arc<dyn AnyTool>`. Its doc comment is the
/// description the model reads. Its parameters are the tool's: their types must be `Deserialize + JsonSchema + Clone`,
/// and their doc comments and attributes (such as `#[serde(default)]`) go with them. A parameter of type `&Cx` or `Cx` is
/// not one of them; it gets the context of the call.
///
/// What the tool does to the world must be said, by one of:
///
/// - `pure`: nothing.
/// - any of `reads(parameter, …)`, `writes(parameter, …)` and `network`. The parameters named are paths, or an `Option`
///   or `Vec` of paths.
/// - `effects = function`, which is given a reference to each parameter, in order, and returns `Effects`.
///
/// May be said:
///
/// - `name = "…"`: what the model calls it, otherwise the function's name.
/// - `alias = "…"`, any number of times: another name it answers to.
/// - `category = Files`: where it belongs in a list.
/// - `parallel = false`: its calls never overlap with others.
/// - `example("what is wanted", r#"{"path": "a.txt"}"#)`, any number of times: a call that shows its use. The input is
///   tried when the tool is registered.
/// - `constraint = "…"`, any number of times: what must hold for it to work.
/// - `side_effect = "…"`, any number of times: what it may change, in words for a person. Decisions are made by the
///   effects above, never by these words.
/// - `returns = "…"`: what it gives back.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(options.into(), function.into()).into()
}
