//! Parses the function under `#[tool]` into its parts.

use syn::{
    Attribute, Block, Error, FnArg, Ident, ItemFn, Pat, PatIdent, PatType, Result, ReturnType, Type,
    Visibility,
};

/// The parts of the function that the macro needs.
pub(crate) struct ToolSignature {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<ToolParameter>,
    pub(crate) context: Option<ContextParameter>,
    pub(crate) returns: Type,
    pub(crate) body: Block,
}

/// A parameter of the tool.
pub(crate) struct ToolParameter {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) pattern: PatIdent,
    pub(crate) kind: Type,
}

/// The parameter that gets the context of the call.
pub(crate) struct ContextParameter {
    pub(crate) pattern: PatIdent,
    pub(crate) kind: Type,
}

impl ToolSignature {
    pub(crate) fn new(function: ItemFn) -> Result<Self> {
        let ItemFn { attrs, vis: visibility, sig, block } = function;
        let (docs, attributes): (Vec<_>, Vec<_>) =
            attrs.into_iter().partition(|attribute| attribute.path().is_ident("doc"));
        let refuse = |problem: &str| Err(Error::new(sig.ident.span(), problem));
        if docs.is_empty() {
            return refuse("a tool needs a doc comment: it is the description the model reads");
        }
        if sig.asyncness.is_none() {
            return refuse("a tool is an `async fn`");
        }
        if sig.constness.is_some() || sig.unsafety.is_some() || sig.abi.is_some() || sig.variadic.is_some() {
            return refuse("a tool is a plain `async fn`");
        }
        if !sig.generics.params.is_empty() || sig.generics.where_clause.is_some() {
            return Err(Error::new_spanned(
                &sig.generics,
                "a tool cannot be generic: the model needs one schema",
            ));
        }
        let ReturnType::Type(_, returns) = sig.output else {
            return refuse("a tool returns `Result<Output, ToolError>`");
        };
        let mut parameters = Vec::new();
        let mut context = None;
        for argument in sig.inputs {
            let parameter = ToolParameter::new(argument)?;
            if !is_context(&parameter.kind) {
                parameters.push(parameter);
            } else if context.is_none() {
                context = Some(ContextParameter { pattern: parameter.pattern, kind: parameter.kind });
            } else {
                return Err(Error::new_spanned(parameter.pattern, "a tool has only one context"));
            }
        }
        let (name, returns, body) = (sig.ident, *returns, *block);
        Ok(Self { docs, attributes, visibility, name, parameters, context, returns, body })
    }

    /// Returns the parameter that an option names.
    pub(crate) fn parameter(&self, name: &Ident) -> Result<&ToolParameter> {
        self.parameters.iter().find(|parameter| parameter.pattern.ident == *name).ok_or_else(|| {
            let names: Vec<_> =
                self.parameters.iter().map(|each| format!("`{}`", each.pattern.ident)).collect();
            let known =
                if names.is_empty() { "has none".to_owned() } else { format!("has {}", names.join(", ")) };
            Error::new(name.span(), format!("no parameter `{name}`; this tool {known}"))
        })
    }
}

impl ToolParameter {
    fn new(argument: FnArg) -> Result<Self> {
        let PatType { attrs, pat, ty, .. } = match argument {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                return Err(Error::new_spanned(receiver, "a tool is a free function, without `self`"));
            }
        };
        match *pat {
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                Ok(Self { attributes: attrs, pattern, kind: *ty })
            }
            other => {
                Err(Error::new_spanned(other, "a tool's parameter needs a plain name, which the model reads"))
            }
        }
    }

    /// Returns true for an `Option` or a `Vec`, which hold any number of values.
    pub(crate) fn is_collection(&self) -> bool {
        last_segment(&self.kind).is_some_and(|name| name == "Option" || name == "Vec")
    }
}

fn is_context(kind: &Type) -> bool {
    let kind = match kind {
        Type::Reference(reference) => &reference.elem,
        other => other,
    };
    last_segment(kind).is_some_and(|name| name == "Cx")
}

fn last_segment(kind: &Type) -> Option<&Ident> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}
