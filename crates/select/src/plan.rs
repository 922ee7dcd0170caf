//! The offline rules: they plan tool calls from natural language, English and Chinese. They are not
//! a model, and need no server and no key.
//!
//! `tokens` and `parsed_request` parse a request, `goal` recognises its goal, and `references`
//! resolves references to earlier turns. `steps` reaches the goal, `results` parses the outputs of
//! tools, and `phrases` holds the answers. `docs/rules.md` describes the abilities.

mod compound;
mod goal;
mod names;
mod parsed_request;
mod phrases;
mod references;
mod results;
mod run;
mod steps;
mod tokens;
mod words;

use std::{collections::VecDeque, sync::Arc};

use windlass_contract::{
    BoxFuture, Content, Input, Item, ToolCall,
    item::{Body, Cached, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
};

use crate::text;
use parsed_request::ParsedRequest;
use phrases::{AnswerLanguage, AnswerPhrase};
use references::{ConversationMemory, ResolvedGoal};
use run::{NextAction, PlanResult, PlanRun};

/// The name of the provider, of its only model and of its wire format.
pub const RULES: &str = "rules";

/// The former name of the provider, which configurations and sessions may still contain.
pub const FORMER_NAME: &str = "builtin";

/// Maximum length of a request.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// Maximum number of lines of an answer, and length of a line.
const MAX_LINES: usize = 200;
const MAX_LINE_BYTES: usize = 500;

/// Returns the rules as a model client.
pub fn rules() -> Arc<dyn ModelClient> {
    let [provider, model] = [RULES, RULES].map(str::to_owned);
    let info = ModelInfo {
        provider,
        model,
        wire: RULES,
        request_retries: 0,
        stream_retries: 0,
        retry_budget: std::time::Duration::ZERO,
    };
    Arc::new(RulePlanner { info })
}

struct RulePlanner {
    info: ModelInfo,
}

impl ModelClient for RulePlanner {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let mut events = VecDeque::new();
        if prompt.output_schema.is_some() {
            let notice = "the rules answer in plain text; the output schema is not used";
            events.push_back(ModelEvent::Notice(notice.to_owned()));
        }
        let next = next(prompt.history);
        let finish = if matches!(next, NextAction::Decline(_)) { Finish::Declined } else { Finish::Done };
        let body = match next {
            NextAction::Call { tool, input, announcement } => {
                if let Some(text) = announcement {
                    events.push_back(ModelEvent::TextDelta(text.clone()));
                    let content = vec![Content::Text(text)];
                    events
                        .push_back(ModelEvent::Item(Body::Message { role: Role::Assistant, content }.into()));
                }
                let id = id(prompt).into();
                Body::Call(ToolCall { id, name: tool.into(), input: Input::Json(input) })
            }
            NextAction::Say(text) | NextAction::Decline(text) => {
                events.push_back(ModelEvent::TextDelta(text.clone()));
                Body::Message { role: Role::Assistant, content: vec![Content::Text(text)] }
            }
        };
        events.push_back(ModelEvent::Item(body.into()));
        events.push_back(ModelEvent::Completed { usage: None, finish });
        Box::pin(async { Ok(Box::new(AnswerStream(events)) as Box<dyn ModelStream>) })
    }
}

/// The remaining events of an answer.
struct AnswerStream(VecDeque<ModelEvent>);

impl ModelStream for AnswerStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async { self.0.pop_front().map(Ok) })
    }
}

/// Returns the id of a call. It is unique among conversations, as `windlass undo` must identify the
/// call.
fn id(prompt: Prompt<'_>) -> String {
    let thread = prompt.thread.as_str();
    format!("{RULES}_{}_{}", thread.rsplit('-').next().unwrap_or(thread), prompt.history.len())
}

/// Returns the next action of a conversation. Earlier turns are replayed, because the request may
/// refer to them.
fn next(history: &[Cached<Item>]) -> NextAction {
    let (earlier, mut run) = PlanRun::turns(history);
    let mut memory = ConversationMemory::default();
    for mut turn in earlier {
        if let Some((wanted, end)) = plan(&mut turn, &memory) {
            memory.record_turn(&turn, wanted, &end);
        }
    }
    match plan(&mut run, &memory) {
        None => run.decline(AnswerPhrase::TooLong, &[&MAX_REQUEST_BYTES.to_string()]),
        Some((_, Ok(answer) | Err(NextAction::Say(answer)))) => {
            NextAction::Say(bounded(&answer, run.language))
        }
        Some((_, Err(NextAction::Decline(answer)))) => NextAction::Decline(bounded(&answer, run.language)),
        Some((_, Err(call @ NextAction::Call { .. }))) => call,
    }
}

/// Returns the goal of a turn and its progress, unless the request is too long.
fn plan(run: &mut PlanRun<'_>, memory: &ConversationMemory) -> Option<(ResolvedGoal, PlanResult<String>)> {
    if run.request.len() > MAX_REQUEST_BYTES {
        return None;
    }
    let request = ParsedRequest::new(&run.request);
    run.runs_nothing = request.runs_nothing;
    let wanted = memory.resolve(&request);
    if !wanted.goal.is_understood()
        && let Some(parts) = compound::understood_parts(&request)
    {
        let end = run.reach_all(&parts);
        return Some((wanted, end));
    }
    let end = run.reach(&wanted.goal, &request);
    Some((wanted, end))
}

/// Cuts an answer to a length that a person reads.
fn bounded(answer: &str, language: AnswerLanguage) -> String {
    let lines = answer.lines().count();
    let kept = answer.lines().take(MAX_LINES).map(|line| text::cut(line, MAX_LINE_BYTES));
    let kept = kept.collect::<Vec<_>>().join("\n");
    match lines.saturating_sub(MAX_LINES) {
        0 => kept,
        more => format!("{kept}\n{}", language.say(AnswerPhrase::More, &[&more.to_string()])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};
    use windlass_contract::call::InputKind;

    use super::*;

    fn said(text: &str) -> Cached<Item> {
        Cached::new(Item::message(Role::User, text))
    }

    /// Returns the next action after so many calls with the same output.
    fn after(request: &str, calls: usize, output: &str) -> NextAction {
        after_each(request, &vec![output; calls])
    }

    /// Returns the next action after calls with these outputs, one after the other.
    fn after_each(request: &str, outputs: &[&str]) -> NextAction {
        let mut history =
            vec![said("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"), said(request)];
        talk(&mut history, outputs);
        next(&history)
    }

    /// Answers the next calls, one after the other.
    fn talk(history: &mut Vec<Cached<Item>>, outputs: &[&str]) {
        for output in outputs {
            let NextAction::Call { tool, input, .. } = next(history) else { break };
            let id = format!("{}", history.len());
            let call = ToolCall { id: id.as_str().into(), name: tool.into(), input: Input::Json(input) };
            let content = vec![Content::Text((*output).to_owned())];
            history.push(Cached::new(Body::Call(call).into()));
            history.push(Cached::new(
                Body::Output { call: id.as_str().into(), input: InputKind::Json, content, failed: false }
                    .into(),
            ));
        }
    }

    #[test]
    fn what_was_told_in_another_directory_is_not_referred_to() {
        let place = |cwd: &str| said(&format!("<environment_context><cwd>{cwd}</cwd></environment_context>"));
        let mut history = vec![place("/w"), said("list the files")];
        talk(&mut history, &["Absolute path: /w\na.rs\nb.rs\n"]);
        for (cwd, goes_on) in [("/w", true), ("/v", false)] {
            history.extend([place(cwd), said("show the second one")]);
            assert_eq!(matches!(next(&history), NextAction::Call { .. }), goes_on, "{cwd}");
        }
    }

    #[test]
    fn a_plan_goes_on_where_the_conversation_stands() {
        let listing = "Absolute path: /w\nsrc/\nsrc/a.rs\n";
        assert!(matches!(after("show a.rs", 0, ""), NextAction::Call { tool: "list_dir", .. }));
        let NextAction::Call { tool, input, .. } = after("show a.rs", 1, listing) else {
            panic!("it has not read the file")
        };
        assert_eq!((tool, input.as_str()), ("read_file", r#"{"file_path":"src/a.rs","limit":2000}"#));
        assert_eq!(
            after("show b.rs", 2, listing),
            NextAction::Decline("There is no file `b.rs` here. Did you mean src/a.rs?".into())
        );
    }

    #[test]
    fn no_two_conversations_have_a_call_of_the_same_name() {
        let tools = Cached::new(Vec::new());
        let ids = [("0199-aa", 1), ("0199-bb", 1), ("0199-bb", 2)].map(|(thread, length)| {
            let history: Vec<_> = (0..length).map(|_| said("hi")).collect();
            let (instructions, parallel_calls, output_schema) = ("", false, None);
            let (thread, history) = (&thread.into(), history.as_slice());
            id(Prompt { thread, instructions, history, tools: &tools, parallel_calls, output_schema })
        });
        assert_eq!(ids, ["rules_aa_1", "rules_bb_1", "rules_bb_2"]);
    }

    #[test]
    fn commands_make_things_in_the_tmp_of_a_sandbox_only_where_it_is_the_users() {
        let roots =
            "<writable_roots>\n    <root>/tmp/out</root>\n    <root>/tmp/a b/</root>\n  </writable_roots>";
        for (path, around, is_made) in [
            ("/tmp/x.txt", "", false),
            ("/tmp/x.txt", roots, false),
            ("/tmp/outer/x.txt", roots, false),
            ("/tmp/out/../x.txt", roots, false),
            ("/tmp/out/x.txt", roots, true),
            ("'/tmp/a b/x.txt'", roots, true),
            ("/srv/x.txt", "", true),
        ] {
            let around = format!(
                "<environment_context>\n  <cwd>/w</cwd>\n  <sandbox_mode>workspace-write</sandbox_mode>\n  {around}\n</environment_context>"
            );
            let mut history = vec![said(&around), said(&format!("copy a.txt to {path}"))];
            talk(&mut history, &["Absolute path: /w\na.txt\n", "failed to read file: `x` does not exist"]);
            match next(&history) {
                NextAction::Call { tool: "shell_command", .. } => assert!(is_made, "{path}"),
                NextAction::Decline(why) => {
                    assert!(!is_made && why.contains("a /tmp of their own"), "{path} {why}")
                }
                other => panic!("{path} {other:?}"),
            }
        }
    }

    #[test]
    fn what_a_tool_refuses_is_told() {
        let NextAction::Decline(answer) = after("run `make`", 1, "rejected by user") else {
            panic!("it asks again")
        };
        assert_eq!(answer, "It did not work: rejected by user");
    }

    #[test]
    fn what_was_deleted_is_told_also_where_the_directory_stays() {
        let [here, inside] = ["Absolute path: /w\nd/\nd/a\n", "Absolute path: /w/d\na\n"];
        let ended = "Exit code: 1\nWall time: 0 seconds\nOutput:\nrmdir: d is busy\n";
        assert_eq!(
            after_each("delete the directory d", &[here, inside, "Success.", ended]),
            NextAction::Decline(
                "Deleted 1 file in d, which `windlass undo` brings back; the directory itself could not be deleted: rmdir: d is busy".into()
            )
        );
    }

    #[test]
    fn what_cannot_be_listed_whole_is_not_deleted_and_not_counted() {
        let cut = "Absolute path: /w\nd/\nd/a\nMore than 2 entries found";
        assert_eq!(
            after("delete the directory d", 2, cut),
            NextAction::Decline(
                "There is too much here for me to see all that is in d; I left it alone.".into()
            )
        );
    }

    #[test]
    fn what_was_not_counted_to_its_end_is_a_lower_bound() {
        let listed = "Absolute path: /w\na/\na/b.txt\nc.txt\nMore than 3 entries found";
        let counted = "/w/a/b.txt:3\n/w/c.txt:4\n(there are more; narrow the search or raise `limit`)";
        let hit = "/w/c.txt:1:x\n(there are more; narrow the search or raise `limit`)";
        for (request, output, answer) in [
            ("how many files are there", listed, "at least 2 files"),
            ("这里有多少个文件", listed, "至少 2 个文件"),
            ("count the txt files", listed, "at least 2 files in *.txt"),
            ("find *.md", listed, "No file fits.\n(not everything was looked at: there is too much)"),
            ("how many lines are there?", counted, "at least 7 lines in at least 2 files"),
            ("一共有多少行", counted, "至少 2 个文件，共 至少 7 行"),
            (
                "search for \"x\"",
                hit,
                "at least 1 line in at least 1 file:\nc.txt:1: x\n(capital and small letters count as the same)",
            ),
        ] {
            let note = if request.is_ascii() {
                "(ignored files were not looked at)"
            } else {
                "（没有查看被忽略的文件）"
            };
            assert_eq!(after(request, 3, output), NextAction::Say(format!("{answer}\n{note}")), "{request}");
        }
    }

    #[test]
    fn what_fails_is_not_counted_as_nothing() {
        for request in ["how many lines are there?", "grep TODO"] {
            let answer = after(request, 1, "unable to access `.`: no");
            assert_eq!(
                answer,
                NextAction::Decline("It did not work: unable to access `.`: no".into()),
                "{request}"
            );
        }
    }

    #[test]
    fn what_is_named_by_its_path_is_found_although_the_listing_is_cut() {
        let request = "how many lines does z.txt have";
        let NextAction::Call { input, .. } =
            after(request, 1, "Absolute path: /w\na.txt\nMore than 1 entries found")
        else {
            panic!("it has not looked at the directory")
        };
        assert!(input.contains(r#""depth":1,"dir_path":".""#), "{input}");
        let NextAction::Call { tool, input, .. } =
            after(request, 2, "Absolute path: /w\nz.txt\nMore than 1 entries found")
        else {
            panic!("it has not counted")
        };
        assert_eq!(tool, "grep_files");
        assert!(input.contains(r#""path":"z.txt""#), "{input}");
    }

    #[test]
    fn a_place_outside_is_looked_at_and_not_replaced() {
        for place in ["/", "..", "/etc"] {
            let request = format!("search for \"x\" in {place}");
            let NextAction::Call { input, .. } = after(&request, 1, "Absolute path: /w\n") else {
                panic!("{place}")
            };
            assert!(input.contains(&format!(r#""path":"{place}""#)), "{input}");
        }
    }

    #[test]
    fn long_requests_are_not_read_and_long_answers_are_cut() {
        let NextAction::Decline(answer) = after(&"a ".repeat(1 << 19), 0, "") else { panic!("it acts") };
        assert!(answer.contains("16384 bytes"), "{answer}");
        let rows = "x\n".repeat(1000);
        let NextAction::Say(answer) =
            after("run `yes`", 1, &format!("Exit code: 0\nWall time: 0 seconds\nOutput:\n{rows}"))
        else {
            panic!("it asks again")
        };
        assert!(answer.ends_with("x\n… and 800 more lines"), "{answer}");
    }

    proptest! {
        #[test]
        fn any_request_and_any_result_is_answered(request in any::<String>(), output in any::<String>()) {
            after(&request, 20, &output);
        }

        #[test]
        fn any_conversation_is_answered(requests in proptest::collection::vec(proptest::collection::vec(0..WORDS.len(), 0..6), 1..5)) {
            let mut history = Vec::new();
            for request in requests {
                let request: Vec<_> = request.iter().map(|at| WORDS[*at]).collect();
                history.push(said(&request.join(" ")));
                talk(&mut history, &["Absolute path: /w\nsrc/a.rs\nL1: x\n/w/src/a.rs:1:x"; 20]);
            }
        }

        #[test]
        fn words_in_any_order_are_answered(words in proptest::collection::vec(0..WORDS.len(), 0..8), output in "[-:a-zL0-9 \n.*/]*") {
            let request: Vec<_> = words.iter().map(|at| WORDS[*at]).collect();
            after(&request.join(" "), 20, &output);
        }
    }

    const WORDS: [&str; 30] = [
        "it",
        "the second one",
        "and",
        "in src",
        "第二个",
        "呢",
        "show",
        "find",
        "first",
        "lines",
        "5",
        "10-20",
        "20-10",
        "99999999999999999999",
        "src/a.rs",
        "*.md",
        "\"a b\"",
        "TODO",
        "run",
        "tests",
        "delete",
        "replace",
        "with",
        "第三行",
        "前几行",
        "打开说明.md",
        "最大的文件",
        "since",
        "2KB",
        "larger than",
    ];
}
