//! The options in the parentheses of `#[tool(…)]`.

use proc_macro2::Span;
use syn::{
    Error, Expr, Ident, LitBool, LitStr, Result, Token, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

const EFFECTS: &str =
    "one of: `pure`; any of `reads(parameter)`, `writes(parameter)` and `network`; `effects = function`";

/// The options of a tool.
pub(crate) struct ToolOptions {
    pub(crate) effects: EffectsOption,
    pub(crate) metadata: ToolMetadata,
}

/// The options of a tool apart from its effects.
#[derive(Default)]
pub(crate) struct ToolMetadata {
    pub(crate) name: Option<LitStr>,
    pub(crate) category: Option<Ident>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) parallel: Option<LitBool>,
    pub(crate) examples: Vec<ExampleOption>,
    pub(crate) constraints: Vec<LitStr>,
    pub(crate) side_effects: Vec<LitStr>,
    pub(crate) returns: Option<LitStr>,
}

/// A call that shows the use of the tool.
pub(crate) struct ExampleOption {
    pub(crate) request: LitStr,
    pub(crate) input: LitStr,
}

/// The declaration of the effects of a tool.
pub(crate) enum EffectsOption {
    Pure,
    Declared(DeclaredEffects),
    Function(Box<Expr>),
}

/// Effects listed one by one.
#[derive(Default)]
pub(crate) struct DeclaredEffects {
    pub(crate) reads: Vec<Ident>,
    pub(crate) writes: Vec<Ident>,
    pub(crate) network: bool,
}

impl Parse for ToolOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut raw = RawOptions::default();
        while !input.is_empty() {
            raw.option(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        raw.check()
    }
}

/// The options as written, before they are checked for contradictions.
#[derive(Default)]
struct RawOptions {
    pure: Option<Span>,
    declared: Option<DeclaredEffects>,
    function: Option<Expr>,
    metadata: ToolMetadata,
}

impl RawOptions {
    fn option(&mut self, input: ParseStream<'_>) -> Result<()> {
        let key: Ident = input.parse()?;
        match key.to_string().as_str() {
            "pure" => set_once(&key, &mut self.pure, key.span())?,
            "network" => self.declared.get_or_insert_default().network = true,
            "reads" => self.declared.get_or_insert_default().reads.extend(names(&key, input)?),
            "writes" => self.declared.get_or_insert_default().writes.extend(names(&key, input)?),
            "effects" => set_once(&key, &mut self.function, value(input)?)?,
            "name" => set_once(&key, &mut self.metadata.name, value(input)?)?,
            "category" => set_once(&key, &mut self.metadata.category, value(input)?)?,
            "alias" => self.metadata.aliases.push(value(input)?),
            "parallel" => set_once(&key, &mut self.metadata.parallel, value(input)?)?,
            "example" => self.metadata.examples.push(example(&key, input)?),
            "constraint" => self.metadata.constraints.push(value(input)?),
            "side_effect" => self.metadata.side_effects.push(value(input)?),
            "returns" => set_once(&key, &mut self.metadata.returns, value(input)?)?,
            _ => {
                let known = "`name`, `category`, `alias`, `parallel`, `example`, `constraint`, `side_effect`, `returns`";
                return Err(Error::new(
                    key.span(),
                    format!("unknown option `{key}`; options are {known}, and for the effects {EFFECTS}"),
                ));
            }
        }
        Ok(())
    }

    fn check(self) -> Result<ToolOptions> {
        let effects = match (self.pure, self.declared, self.function) {
            (Some(_), None, None) => EffectsOption::Pure,
            (None, Some(declared), None) => EffectsOption::Declared(declared),
            (None, None, Some(function)) => EffectsOption::Function(Box::new(function)),
            (None, None, None) => {
                return Err(Error::new(
                    Span::call_site(),
                    format!("declare the effects of the tool, by {EFFECTS}"),
                ));
            }
            (pure, _, function) => {
                let span = pure.or_else(|| function.as_ref().map(syn::spanned::Spanned::span));
                let span = span.unwrap_or_else(Span::call_site);
                return Err(Error::new(
                    span,
                    format!("these effects contradict each other; declare {EFFECTS}"),
                ));
            }
        };
        Ok(ToolOptions { effects, metadata: self.metadata })
    }
}

fn value<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses the parameters in the parentheses after `reads` or `writes`.
fn names(key: &Ident, input: ParseStream<'_>) -> Result<Punctuated<Ident, Token![,]>> {
    let nothing = || Error::new(key.span(), format!("name the parameters that are paths: `{key}(path)`"));
    if !input.peek(syn::token::Paren) {
        return Err(nothing());
    }
    let inner;
    parenthesized!(inner in input);
    let names = Punctuated::parse_terminated(&inner)?;
    if names.is_empty() { Err(nothing()) } else { Ok(names) }
}

/// Parses the request and the input in the parentheses after `example`.
fn example(key: &Ident, input: ParseStream<'_>) -> Result<ExampleOption> {
    let parts = if input.peek(syn::token::Paren) {
        let inner;
        parenthesized!(inner in input);
        Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?.into_iter().collect()
    } else {
        Vec::new()
    };
    let [request, input] = <[LitStr; 2]>::try_from(parts).map_err(|_| {
        Error::new(key.span(), "give a request and the input that fulfils it: `example(\"…\", r#\"{…}\"#)`")
    })?;
    Ok(ExampleOption { request, input })
}

fn set_once<T>(key: &Ident, place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(key.span(), format!("`{key}` is given twice"))),
    }
}
