//! The hooks of a configuration, ready to run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use regex::Regex;
use serde_json::{Map, Value};
use windlass_contract::{
    BoxFuture,
    hooks::{HookEvent, HookRun, HookStep, HookVerdict, Hooks},
    remote::{ServerCommand, ServerLauncher},
};

use crate::{
    answer::HookAnswer,
    config::{HookConfigError, HookHandler, HooksConfig},
    hook_process,
};

/// Variable with the directory of the workspace.
const DIRECTORY_VARIABLE: &str = "WINDLASS_PROJECT_DIR";

/// Hooks that are commands. Several agents can share them.
pub struct CommandHooks {
    hooks: BTreeMap<HookEvent, Vec<CommandHook>>,
    workspace: PathBuf,
    launcher: Arc<dyn ServerLauncher>,
}

/// The sessions of this process whose start was told.
static BEGUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

struct CommandHook {
    matcher: HookMatcher,
    handler: HookHandler,
    source: String,
}

/// A hook for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDescription {
    /// The step.
    pub event: HookEvent,
    /// The names that it is told about; everything if there is none.
    pub matcher: Option<String>,
    /// The hook.
    pub handler: HookHandler,
    /// The file that configures it.
    pub source: String,
}

impl fmt::Debug for CommandHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandHooks").field("events", &self.hooks.keys()).finish_non_exhaustive()
    }
}

impl CommandHooks {
    /// Creates hooks that start in the workspace.
    pub fn new(workspace: PathBuf, launcher: Arc<dyn ServerLauncher>) -> Self {
        Self { hooks: BTreeMap::new(), workspace, launcher }
    }

    /// Adds the hooks of a configuration, after those that are there. `source` names its file.
    pub fn with_config(mut self, config: &HooksConfig, source: &str) -> Result<Self, HookConfigError> {
        config.check()?;
        for event in HookEvent::ALL {
            for group in config.groups(event) {
                let matcher = HookMatcher::parse(event, group.matcher.as_deref())?;
                for handler in &group.hooks {
                    let hook = CommandHook {
                        matcher: matcher.clone(),
                        handler: handler.clone(),
                        source: source.to_owned(),
                    };
                    self.hooks.entry(event).or_default().push(hook);
                }
            }
        }
        Ok(self)
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Lists the hooks, in the order in which they run.
    pub fn list(&self) -> Vec<HookDescription> {
        let all = HookEvent::ALL.into_iter().filter_map(|event| Some((event, self.hooks.get(&event)?)));
        all.flat_map(|(event, hooks)| hooks.iter().map(move |hook| hook.description(event))).collect()
    }

    /// Runs one hook, by its place in the [`list`](Self::list), whatever its matcher is. `None` if
    /// there is no such hook.
    pub async fn run_one(&self, place: usize, input: Map<String, Value>) -> Option<HookRun> {
        let all = HookEvent::ALL.into_iter().filter_map(|event| Some((event, self.hooks.get(&event)?)));
        let mut all = all.flat_map(|(event, hooks)| hooks.iter().map(move |hook| (event, hook)));
        let (event, hook) = all.nth(place)?;
        Some(self.run_hook(hook, &HookStep { event, names: Vec::new(), input }).await)
    }

    async fn run_hook(&self, hook: &CommandHook, step: &HookStep) -> HookRun {
        let began = Instant::now();
        let handler = &hook.handler;
        let mut environment = handler.env.clone();
        environment.insert(DIRECTORY_VARIABLE.to_owned(), self.workspace.to_string_lossy().into_owned());
        let command = ServerCommand {
            argv: handler.command.argv(),
            cwd: Some(self.workspace.clone()),
            environment,
            profile: handler.profile(),
        };
        let mut input = Value::Object(step.input.clone()).to_string().into_bytes();
        input.push(b'\n');
        let ended = hook_process::run(&*self.launcher, &command, &input, handler.time_limit()).await;
        let answer = ended.and_then(|ended| HookAnswer::parse(step.event, &ended));
        let answer = answer.unwrap_or_else(|problem| {
            let denies = handler.denies_on_failure(step.event);
            let verdict = if denies { HookVerdict::FailedDenied } else { HookVerdict::FailedIgnored };
            tracing::warn!(
                hook = handler.title(),
                event = step.event.name(),
                problem,
                denies,
                "a hook failed"
            );
            failed(verdict, problem)
        });
        HookRun {
            event: step.event,
            hook: handler.title(),
            verdict: answer.verdict,
            reason: answer.reason,
            context: answer.context,
            message: answer.message,
            updated_input: answer.updated_input,
            end_turn: answer.end_turn,
            duration: began.elapsed(),
        }
    }
}

impl Hooks for CommandHooks {
    fn listens(&self, event: HookEvent, names: &[&str]) -> bool {
        let hooks = self.hooks.get(&event).into_iter().flatten();
        hooks
            .into_iter()
            .any(|hook| names.iter().any(|name| hook.matcher.matches(name)) || hook.matcher.is_all())
    }

    fn begins(&self, session: &str) -> bool {
        BEGUN.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned())
    }

    fn run<'a>(&'a self, step: &'a HookStep) -> BoxFuture<'a, Vec<HookRun>> {
        Box::pin(async move {
            let (mut step, mut runs) = (step.clone(), Vec::new());
            for hook in self.hooks.get(&step.event).into_iter().flatten() {
                if !hook.matcher.is_all() && !step.names.iter().any(|name| hook.matcher.matches(name)) {
                    continue;
                }
                let run = self.run_hook(hook, &step).await;
                if let Some(input) = &run.updated_input
                    && step.event == HookEvent::PreToolUse
                {
                    step.input.insert("tool_input".to_owned(), input.clone());
                }
                let is_denied = run.verdict.is_denial();
                runs.push(run);
                if is_denied {
                    break;
                }
            }
            runs
        })
    }
}

impl CommandHook {
    fn description(&self, event: HookEvent) -> HookDescription {
        let matcher = self.matcher.0.as_ref().map(|(text, _)| text.clone());
        HookDescription { event, matcher, handler: self.handler.clone(), source: self.source.clone() }
    }
}

fn failed(verdict: HookVerdict, reason: String) -> HookAnswer {
    HookAnswer { verdict, reason, context: None, message: None, updated_input: None, end_turn: None }
}

/// A regular expression for whole names. `None` matches everything.
#[derive(Clone)]
pub(crate) struct HookMatcher(Option<(String, Regex)>);

impl HookMatcher {
    pub(crate) fn parse(event: HookEvent, matcher: Option<&str>) -> Result<Self, HookConfigError> {
        let Some(matcher) = matcher.filter(|matcher| !matches!(*matcher, "" | "*")) else {
            return Ok(Self(None));
        };
        let regex = Regex::new(&format!("^(?:{matcher})$")).map_err(|error| HookConfigError::Matcher {
            event,
            matcher: matcher.to_owned(),
            reason: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        })?;
        Ok(Self(Some((matcher.to_owned(), regex))))
    }

    fn is_all(&self) -> bool {
        self.0.is_none()
    }

    fn matches(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|(_, regex)| regex.is_match(name))
    }
}
