//! The model of a server on this machine that was chosen without a model.

use std::time::Duration;

use windlass::{
    ModelError,
    model::{Provider, WireApi, list_models},
};

use super::{ProgramSetup, machine::key};
use crate::{model_sources::is_name, problem::CliProblem, redact, screen::visible};

/// Maximum time to wait for the list of a server on this machine.
const LIST_TIME_LIMIT: Duration = Duration::from_secs(3);
/// Maximum number of models that are listed.
const MAX_LISTED: usize = 40;
/// Parts of the names of models that cannot answer.
const OTHER_PURPOSES: [&str; 3] = ["embed", "rerank", "whisper"];

impl ProgramSetup {
    /// Chooses the model if there is only one: a provider on this machine without a model is asked
    /// for its list. Several models are an error that lists them.
    pub(crate) fn with_installed_model(mut self) -> Result<Self, CliProblem> {
        let id = self.provider_id().to_owned();
        let Some(provider) = self.config().model_providers.get(&id) else { return Ok(self) };
        let is_local = provider.wire_api != WireApi::Scripted && provider.is_on_this_machine();
        if self.model_name().is_some() || !is_local {
            return Ok(self);
        }
        let listed = crate::runtime()?.block_on(list_models(&id, provider, &key, LIST_TIME_LIMIT));
        let model = choose(&id, provider, listed)?;
        crate::note(&format!("using `{}`, the only model of `{id}`", visible(&model)));
        self.loaded.config.model = Some(model);
        Ok(self)
    }
}

/// Returns the only model of a list, or the error that says how to choose.
fn choose(
    id: &str,
    provider: &Provider,
    listed: Result<Vec<String>, ModelError>,
) -> Result<String, CliProblem> {
    let models = listed.map_err(|error| {
        let reason = redact::own().clean(&error.to_string()).into_owned();
        let start = format!("start it, or choose a model with `--model`; {reason}");
        CliProblem::usage(format!("no model is set for `{id}`, and its server gave no list: {start}"))
    })?;
    let answers = |model: &String| {
        let lower = model.to_ascii_lowercase();
        is_name(model) && !OTHER_PURPOSES.iter().any(|purpose| lower.contains(purpose))
    };
    let mut models: Vec<_> = models.into_iter().filter(answers).collect();
    models.sort();
    models.dedup();
    if models.len() > 1 {
        return Err(CliProblem::usage(several(id, &models)));
    }
    models.pop().ok_or_else(|| {
        let how = if provider.name == "Ollama" { "; `ollama pull qwen3:8b` gets one" } else { "; load one" };
        CliProblem::usage(format!("`{id}` has no model{how}"))
    })
}

fn several(id: &str, models: &[String]) -> String {
    let count = models.len();
    let mut lines = vec![format!("`{id}` has {count} models; choose one with `--model`:")];
    lines.extend(models.iter().take(MAX_LISTED).map(|model| format!("  {}", visible(model))));
    if count > MAX_LISTED {
        lines.push(format!("  and {} more; `windlass models list -p {id}` has all", count - MAX_LISTED));
    }
    lines.push(format!("`windlass init -p {id} -m NAME` keeps the choice"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(models: &[&str]) -> Result<String, String> {
        let listed = Ok(models.iter().map(ToString::to_string).collect());
        let provider = Provider { name: "Ollama".to_owned(), ..Provider::default() };
        choose("ollama", &provider, listed).map_err(|problem| problem.message)
    }

    #[test]
    fn the_only_model_that_can_answer_is_chosen() {
        assert_eq!(chosen(&["nomic-embed-text:latest", "qwen3:8b", "a\u{1b}[2J"]).unwrap(), "qwen3:8b");
    }

    #[test]
    fn several_models_are_listed_with_the_way_to_choose() {
        insta::assert_snapshot!(chosen(&["qwen3:8b", "llama3.2"]).unwrap_err(), @r"
        `ollama` has 2 models; choose one with `--model`:
          llama3.2
          qwen3:8b
        `windlass init -p ollama -m NAME` keeps the choice
        ");
        let many: Vec<_> = (0..50).map(|at| format!("m{at:02}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(chosen(&many).unwrap_err().contains("\n  and 10 more; "));
    }

    #[test]
    fn no_model_is_an_error_that_says_how_to_get_one() {
        assert_eq!(chosen(&[]).unwrap_err(), "`ollama` has no model; `ollama pull qwen3:8b` gets one");
    }
}
