//! Generates the code of the tool from the function.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, Ident, Result, Type, ext::IdentExt};

use crate::{
    options::{DeclaredEffects, EffectsOption, ExampleOption, ToolMetadata, ToolOptions},
    signature::{ContextParameter, ToolParameter, ToolSignature},
};

/// Expands the attribute. An error becomes a `compile_error!`.
pub(crate) fn expand(options: TokenStream, function: TokenStream) -> TokenStream {
    let both = match (syn::parse2::<ToolOptions>(options), syn::parse2(function).and_then(ToolSignature::new))
    {
        (Ok(options), Ok(signature)) => Ok((options, signature)),
        (Err(mut problem), Err(another)) => {
            problem.combine(another);
            Err(problem)
        }
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    };
    both.and_then(|(options, signature)| tool(&options, &signature)).unwrap_or_else(Error::into_compile_error)
}

fn tool(options: &ToolOptions, signature: &ToolSignature) -> Result<TokenStream> {
    let ToolSignature { docs, attributes, visibility, name, parameters, returns, body, .. } = signature;
    let tool_name =
        options.metadata.name.as_ref().map_or_else(|| name.unraw().to_string(), syn::LitStr::value);
    let fields = parameters.iter().map(|ToolParameter { attributes, pattern, kind }| {
        let name = &pattern.ident;
        quote!(#(#attributes)* #name: #kind)
    });
    let patterns = parameters.iter().map(|parameter| &parameter.pattern);
    // Hygienic names that the body of the function cannot see.
    let args = Ident::new("args", Span::mixed_site());
    let cx = Ident::new("cx", Span::mixed_site());
    let effects = effects(&options.effects, signature, &args)?;
    let context = signature.context.as_ref().map(|context| bind(context, &cx));
    let statements = &body.stmts;
    let meta = meta(&options.metadata);
    Ok(quote! {
        #(#docs)*
        #(#attributes)*
        #visibility fn #name() -> ::std::sync::Arc<dyn ::windlass::__macro::AnyTool> {
            #(#docs)*
            #[derive(
                ::std::clone::Clone,
                ::windlass::__macro::serde::Deserialize,
                ::windlass::__macro::schemars::JsonSchema,
            )]
            #[serde(crate = "::windlass::__macro::serde")]
            #[schemars(crate = "::windlass::__macro::schemars")]
            struct __Args { #(#fields),* }

            struct __Tool;

            impl ::windlass::__macro::Tool for __Tool {
                const NAME: &'static str = #tool_name;
                type Args = __Args;

                fn effects(&self, #args: &__Args) -> ::windlass::__macro::Effects {
                    #effects
                }

                async fn call(&self, #args: &__Args, #cx: &::windlass::__macro::Cx) -> #returns {
                    let __Args { #(#patterns),* } = ::std::clone::Clone::clone(#args);
                    #context
                    #(#statements)*
                }

                fn meta(&self) -> ::windlass::__macro::Meta {
                    #meta
                }
            }

            ::windlass::__macro::erase(__Tool)
        }
    })
}

fn bind(ContextParameter { pattern, kind }: &ContextParameter, cx: &Ident) -> TokenStream {
    let value = if matches!(kind, Type::Reference(_)) {
        quote!(#cx)
    } else {
        quote!(::std::clone::Clone::clone(#cx))
    };
    quote!(let #pattern: #kind = #value;)
}

fn effects(effects: &EffectsOption, signature: &ToolSignature, args: &Ident) -> Result<TokenStream> {
    match effects {
        EffectsOption::Pure => Ok(quote!(::windlass::__macro::Effects::none())),
        EffectsOption::Function(function) => {
            let names = signature.parameters.iter().map(|parameter| &parameter.pattern.ident);
            Ok(quote!((#function)(#(&#args.#names),*)))
        }
        EffectsOption::Declared(DeclaredEffects { reads, writes, network }) => {
            let network = if *network { quote!(Any) } else { quote!(None) };
            let reads = paths(reads, signature, args)?;
            let writes = paths(writes, signature, args)?;
            Ok(quote! {
                ::windlass::__macro::Effects {
                    reads: #reads,
                    writes: #writes,
                    network: ::windlass::__macro::effects::Network::#network,
                    ..::windlass::__macro::Effects::none()
                }
            })
        }
    }
}

/// Generates the list of the paths in the named parameters.
fn paths(names: &[Ident], signature: &ToolSignature, args: &Ident) -> Result<TokenStream> {
    let each = names.iter().map(|name| {
        let values = if signature.parameter(name)?.is_collection() {
            quote_spanned!(name.span()=> #args.#name.iter())
        } else {
            quote_spanned!(name.span()=> ::std::iter::once(&#args.#name))
        };
        Ok(quote_spanned!(name.span()=> .chain(#values.map(::std::path::PathBuf::from))))
    });
    let each = each.collect::<Result<Vec<_>>>()?;
    Ok(quote!(::std::iter::empty() #(#each)* .collect()))
}

fn meta(metadata: &ToolMetadata) -> TokenStream {
    let ToolMetadata { category, aliases, parallel, constraints, side_effects, returns, .. } = metadata;
    let (category, parallel, returns) = (category.iter(), parallel.iter(), returns.iter());
    let examples = metadata.examples.iter().map(|ExampleOption { request, input }| {
        quote!(::windlass::__macro::meta::Example { request: #request, input: #input })
    });
    quote! {
        ::windlass::__macro::Meta {
            #(category: ::windlass::__macro::meta::Category::#category,)*
            #(parallel: #parallel,)*
            aliases: ::std::vec![#(#aliases),*],
            examples: ::std::vec![#(#examples),*],
            constraints: ::std::vec![#(::std::string::String::from(#constraints)),*],
            side_effects: ::std::vec![#(::std::string::String::from(#side_effects)),*],
            #(returns: ::std::string::String::from(#returns),)*
            ..::windlass::__macro::Meta::default()
        }
    }
}

#[cfg(test)]
mod tests;
