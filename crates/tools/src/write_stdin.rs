//! `write_stdin`: types to a session of `exec_command`, or looks at it again.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    effects::Typed,
    meta::{Example, Format},
    tool::ErrorKind,
};

use crate::{
    command,
    sessions::{SessionTable, SessionView},
};

/// Type to a program that `exec_command` started, or wait for more of its output; returns what it
/// printed since, and its exit code once it has ended.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WriteStdinArgs {
    /// The session ID that `exec_command` returned.
    session_id: u32,
    /// What to type. A line ends with a newline; Ctrl-C is `\u0003`, which also ends a session
    /// without a terminal. Empty only waits for output. Default: empty.
    chars: Option<String>,
    /// How many milliseconds to wait for output before the call returns, 250 to 30000; 5000 to
    /// 300000 if nothing is typed. The call returns earlier if the program ends or waits for input.
    /// Default: 250.
    yield_time_ms: Option<u64>,
    /// How many tokens of output to return at most. Default: 10000.
    max_output_tokens: Option<usize>,
}

impl WriteStdinArgs {
    fn chars(&self) -> &str {
        self.chars.as_deref().unwrap_or_default()
    }

    /// Returns the maximum time for which the call waits.
    fn max_yield_ms(&self) -> u64 {
        if self.chars().is_empty() { 300_000 } else { 30_000 }
    }
}

pub(crate) struct WriteStdin {
    sessions: Arc<SessionTable>,
}

impl WriteStdin {
    pub(crate) fn new(sessions: &Arc<SessionTable>) -> Self {
        Self { sessions: Arc::clone(sessions) }
    }
}

impl Tool for WriteStdin {
    const NAME: &'static str = "write_stdin";
    type Args = WriteStdinArgs;

    /// Looking and stopping have no effects. Typed input has not been judged. The policy sees it
    /// with the program that gets it, and whether that program runs outside the sandbox.
    fn effects(&self, args: &WriteStdinArgs) -> Effects {
        let stops_or_looks = args.chars().chars().all(|key| key == '\u{3}');
        if stops_or_looks {
            return Effects::none();
        }
        if let Some(started) = self.sessions.find(args.session_id) {
            let typed = Typed { to: started.command_line().to_owned(), text: args.chars().to_owned() };
            Effects { escalation: started.escalation(), ..Effects::typed(typed) }
        } else {
            // An earlier call may still start the program, and input to it would not have been
            // judged. So this id must never mean a program.
            self.sessions.reserve(args.session_id);
            Effects::none()
        }
    }

    fn adjustments(&self, args: &WriteStdinArgs) -> Vec<String> {
        command::yield_adjustments(args.yield_time_ms, args.max_yield_ms())
    }

    async fn call(&self, args: &WriteStdinArgs, cx: &Cx) -> Result<Output, ToolError> {
        let id = args.session_id;
        let unknown = || {
            let text = format!("write_stdin failed: Unknown process id {id}");
            ToolError::new(ErrorKind::NotFound, text)
        };
        let started = self.sessions.find_and_touch(id).ok_or_else(unknown)?;
        let wanted = args.yield_time_ms.unwrap_or(250);
        let polls = args.chars().is_empty();
        let time = wanted.clamp(if polls { 5_000 } else { 250 }, args.max_yield_ms());
        let view = SessionView::with_time(Duration::from_millis(time), args.max_output_tokens);
        if !polls {
            started.type_keys(args.chars(), view, cx).await?;
        }
        self.sessions.go_on(id, &started, view, cx).await
    }

    fn meta(&self) -> Meta {
        let examples = vec![
            Example { request: "answer yes", input: r#"{"session_id":1234,"chars":"y\n"}"# },
            Example { request: "see what the server has printed", input: r#"{"session_id":1234}"# },
        ];
        let constraints = vec!["only what was started with `tty` can be typed to".to_owned()];
        let side_effects = vec!["whatever the program does with what is typed".to_owned()];
        let requests = [
            "type yes into the program that is running",
            "send the password prompt an answer",
            "press Ctrl-C in the session",
            "is the server that was started still running",
            "给正在运行的程序输入 yes",
            "看看后台进程又输出了什么",
            "结束那个会话",
        ]
        .map(str::to_owned)
        .into();
        Meta { examples, requests, constraints, side_effects, ..command::meta(Format::Session) }
    }
}
