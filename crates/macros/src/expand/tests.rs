//! Errors that the macro makes the compiler report.

use quote::quote;

use super::*;

/// Returns the messages of the errors that the macro generates.
fn complaints(options: TokenStream, function: TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expand(options, function)).unwrap();
    let messages = file.items.into_iter().map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last().unwrap().ident == "compile_error" => {
            item.mac.parse_body::<syn::LitStr>().unwrap().value()
        }
        other => panic!("not an error: {}", quote!(#other)),
    });
    messages.collect()
}

fn complaint(options: TokenStream, function: TokenStream) -> String {
    let [message] = complaints(options, function).try_into().unwrap();
    message
}

/// Returns a function without errors.
fn good() -> TokenStream {
    quote! {
        /// Do it.
        async fn act(path: PathBuf, count: u8) -> Result<Output, ToolError> { Ok("".into()) }
    }
}

#[test]
fn a_tool_without_effects_is_told_all_choices() {
    let expected = "declare the effects of the tool, by one of: `pure`; any of `reads(parameter)`, \
                    `writes(parameter)` and `network`; `effects = function`";
    assert_eq!(complaint(quote!(), good()), expected);
    assert_eq!(complaint(quote!(category = Files), good()), expected);
}

#[test]
fn effects_that_contradict_each_other_are_refused() {
    for options in [quote!(pure, reads(path)), quote!(network, effects = f), quote!(pure, effects = f)] {
        assert!(complaint(options, good()).starts_with("these effects contradict each other"));
    }
}

#[test]
fn paths_must_be_parameters() {
    assert_eq!(complaint(quote!(reads(file)), good()), "no parameter `file`; this tool has `path`, `count`");
    let bare = quote! {
        /// Do it.
        async fn act() -> Result<Output, ToolError> { Ok("".into()) }
    };
    assert_eq!(complaint(quote!(writes(file)), bare), "no parameter `file`; this tool has none");
    assert_eq!(complaint(quote!(reads), good()), "name the parameters that are paths: `reads(path)`");
    assert_eq!(complaint(quote!(writes()), good()), "name the parameters that are paths: `writes(path)`");
}

#[test]
fn unknown_and_repeated_options_are_named() {
    assert!(
        complaint(quote!(pure, colour = "red"), good())
            .starts_with("unknown option `colour`; options are `name`")
    );
    assert_eq!(complaint(quote!(pure, name = "a", name = "b"), good()), "`name` is given twice");
    assert_eq!(complaint(quote!(pure, pure), good()), "`pure` is given twice");
    assert_eq!(complaint(quote!(pure, returns = "a", returns = "b"), good()), "`returns` is given twice");
}

#[test]
fn an_example_has_a_request_and_an_input() {
    let expected = "give a request and the input that fulfils it: `example(\"…\", r#\"{…}\"#)`";
    for options in [quote!(example), quote!(example()), quote!(example("a")), quote!(example("a", "b", "c"))]
    {
        assert_eq!(complaint(quote!(pure, #options), good()), expected);
    }
}

#[test]
fn functions_that_cannot_be_tools_are_told_why() {
    let cases = [
        (
            quote!(
                async fn act() -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool needs a doc comment: it is the description the model reads",
        ),
        (
            quote!(
                #[doc = "Do."]
                fn act() -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool is an `async fn`",
        ),
        (
            quote!(
                #[doc = "Do."]
                async unsafe fn act() -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool is a plain `async fn`",
        ),
        (
            quote!(
                #[doc = "Do."]
                async fn act() {}
            ),
            "a tool returns `Result<Output, ToolError>`",
        ),
        (
            quote!(
                #[doc = "Do."]
                async fn act<T>(a: T) -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool cannot be generic: the model needs one schema",
        ),
        (
            quote!(
                #[doc = "Do."]
                async fn act(&self) -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool is a free function, without `self`",
        ),
        (
            quote!(
                #[doc = "Do."]
                async fn act((a, b): (u8, u8)) -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool's parameter needs a plain name, which the model reads",
        ),
        (
            quote!(
                #[doc = "Do."]
                async fn act(a: &Cx, b: Cx) -> Result<Output, ToolError> {
                    todo!()
                }
            ),
            "a tool has only one context",
        ),
    ];
    for (function, expected) in cases {
        assert_eq!(complaint(quote!(pure), function), expected);
    }
}

#[test]
fn problems_of_the_options_and_of_the_function_are_told_together() {
    let both = complaints(
        quote!(),
        quote!(
            async fn act() -> Result<Output, ToolError> {
                todo!()
            }
        ),
    );
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn something_that_is_not_a_function_is_refused() {
    assert!(
        complaint(
            quote!(pure),
            quote!(
                struct Act;
            )
        )
        .contains("expected")
    );
}
