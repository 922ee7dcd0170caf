//! The first screen without a configured model: what works now, and the line that connects each
//! kind of model.

use windlass::shell_quote;

use crate::{
    model_sources::{KeyPlace, KeyedProvider, LocalServer, ModelSources},
    screen::visible,
    setup::{DEFAULT_OPENAI_MODEL, ProgramSetup},
};

/// Maximum number of models that are named for each server.
const MAX_MODELS: usize = 3;

/// Returns the screen for a session without a model; nothing if one is configured.
pub(crate) fn text(setup: &ProgramSetup) -> Option<String> {
    if setup.has_model() || setup.has_chosen_provider() {
        return None;
    }
    // The search is a service: a session starts without it, too.
    let sources = ModelSources::find(setup).unwrap_or_default();
    let mut lines = offline();
    lines.push(String::new());
    lines.extend(describe(&sources));
    Some(lines.join("\n"))
}

/// Says what works without a model.
fn offline() -> Vec<String> {
    [
        "No model is configured. The offline rules answer now; try:",
        "  what is in this project?",
        "  find the TODOs and show the code around each",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Says what was found, and how each kind of model is connected.
pub(crate) fn describe(sources: &ModelSources) -> Vec<String> {
    let mut lines = Vec::new();
    if !(sources.servers.is_empty() && sources.keyed.is_empty()) {
        lines.push("Found; one line connects it:".to_owned());
        lines.extend(sources.servers.iter().flat_map(server));
        lines.extend(sources.keyed.iter().flat_map(keyed));
        lines.push(String::new());
    }
    lines.extend(
        [
            "To connect a model:",
            "  windlass init             choose from what is found",
            "  windlass login openai     keep an API key, then init",
            "  windlass login --status   list the providers with keys",
            "  Ollama, LM Studio, llama.cpp, vLLM: start one, then init",
        ]
        .map(str::to_owned),
    );
    lines
}

fn server(LocalServer { id, name, models }: &LocalServer) -> Vec<String> {
    let shown: Vec<_> = models.iter().take(MAX_MODELS).map(|model| visible(model)).collect();
    let more = models.len().saturating_sub(MAX_MODELS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let first = models.first().map(|model| shell_quote(model)).unwrap_or_default();
    vec![
        format!("  {} on this machine: {}{more}", visible(name), shown.join(", ")),
        format!("    windlass init -p {} -m {}", shell_quote(id), visible(&first)),
    ]
}

fn keyed(KeyedProvider { id, name, key }: &KeyedProvider) -> Vec<String> {
    let place = match key {
        KeyPlace::Variable(variable) => format!("{} is set", visible(variable)),
        KeyPlace::Login | KeyPlace::Missing(_) => "its key is kept by login".to_owned(),
    };
    let model = if id == "openai" { DEFAULT_OPENAI_MODEL } else { "MODEL" };
    let mut lines = vec![
        format!("  {}: {place}", visible(name)),
        format!("    windlass init -p {} -m {model}", shell_quote(id)),
    ];
    if model == "MODEL" {
        lines.push(format!("    windlass models list -p {}", shell_quote(id)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_shown_with_the_line_that_connects_it() {
        let server = |id: &str, models: &[&str]| LocalServer {
            id: id.to_owned(),
            name: "Ollama".to_owned(),
            models: models.iter().map(ToString::to_string).collect(),
        };
        let keyed = KeyedProvider {
            id: "groq".to_owned(),
            name: "Groq".to_owned(),
            key: KeyPlace::Variable("GROQ_API_KEY".to_owned()),
        };
        let sources = ModelSources {
            servers: vec![server("ollama", &["a", "b", "c", "d", "e"]), server("mine", &["x; rm -rf ~"])],
            keyed: vec![keyed],
        };
        insta::assert_snapshot!(describe(&sources).join("\n"), @r"
        Found; one line connects it:
          Ollama on this machine: a, b, c and 2 more
            windlass init -p ollama -m a
          Ollama on this machine: x; rm -rf ~
            windlass init -p mine -m 'x; rm -rf ~'
          Groq: GROQ_API_KEY is set
            windlass init -p groq -m MODEL
            windlass models list -p groq

        To connect a model:
          windlass init             choose from what is found
          windlass login openai     keep an API key, then init
          windlass login --status   list the providers with keys
          Ollama, LM Studio, llama.cpp, vLLM: start one, then init
        ");
    }

    #[test]
    fn with_nothing_found_the_screen_fits_60_columns() {
        let lines: Vec<_> = offline().into_iter().chain(describe(&ModelSources::default())).collect();
        // A session indents notes by two columns.
        assert!(lines.iter().all(|line| line.chars().count() <= 58), "{lines:#?}");
        assert!(!lines.iter().any(|line| line.starts_with("Found")));
    }
}
