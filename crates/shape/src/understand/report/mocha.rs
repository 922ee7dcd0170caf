//! Parses Mocha: the default format, and `--reporter json-stream`.

use serde::Deserialize;

use super::{FailureBuilder, TestOutputReader, TestTally, jest, milliseconds, stack_place, with_unit};

/// Parses Mocha's lines.
#[derive(Default)]
pub(super) struct MochaReader {
    tally: TestTally,
    done: bool,
    /// Name parts of the failure that is being parsed, followed by its message.
    name: Vec<String>,
    block: Option<FailureBuilder>,
    stream: TestTally,
    stream_done: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MochaTest {
    full_title: String,
    duration: Option<f64>,
    #[serde(default)]
    err: String,
    #[serde(default)]
    stack: String,
}

#[derive(Deserialize)]
struct MochaStats {
    passes: u32,
    pending: u32,
    failures: u32,
    duration: f64,
}

impl TestOutputReader for MochaReader {
    fn read(&mut self, line: &str) {
        if line.starts_with(r#"[""#) {
            return self.event(line);
        }
        let text = line.trim();
        if let Some((number, word)) = text.split_once(' ')
            && let Ok(number) = number.parse::<u32>().map(u64::from)
        {
            self.count(number, word);
        } else if !self.done {
        } else if let Some((number, name)) = text.split_once(") ")
            && line.starts_with("  ")
            && !line.starts_with("      ")
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            self.end_block();
            self.name = vec![name.to_owned()];
        } else if let Some(last) =
            text.strip_suffix(':').filter(|_| !self.name.is_empty() && self.block.is_none())
        {
            self.name.push(last.to_owned());
            self.block = Some(FailureBuilder::new(&self.name.join(" ")));
        } else if let Some(block) = &mut self.block {
            if text.starts_with("at ") {
                block.set_place(stack_place(text))
            } else if !text.is_empty() {
                block.push_line(text)
            }
        } else if !self.name.is_empty() && !text.is_empty() {
            self.name.push(text.to_owned());
        }
    }

    fn tally(mut self: Box<Self>) -> Option<TestTally> {
        self.end_block();
        if self.stream_done {
            return Some(TestTally { runner: "mocha", ..self.stream });
        }
        self.done.then_some(TestTally { runner: "mocha", ..self.tally })
    }
}

impl MochaReader {
    /// Parses `1 passing (23ms)`, `1 pending`, `2 failing`.
    fn count(&mut self, number: u64, word: &str) {
        match word {
            "pending" if self.done => self.tally.skipped = number,
            "failing" if self.done => self.tally.failed = number,
            _ => {
                let time = word.strip_prefix("passing (").and_then(|rest| rest.strip_suffix(')'));
                if let Some(time) = time.and_then(with_unit) {
                    self.done = true;
                    self.tally.passed = number;
                    self.tally.duration = Some(time);
                }
            }
        }
    }

    fn event(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix(r#"["end","#) {
            if let Ok(MochaStats { passes, pending, failures, duration }) =
                serde_json::from_str(rest.trim_end_matches(']'))
            {
                let numbers = [passes, pending, failures].map(u64::from);
                [self.stream.passed, self.stream.skipped, self.stream.failed] = numbers;
                self.stream.duration = milliseconds(&duration.to_string());
                self.stream_done = true;
            }
            return;
        }
        let Some((word, rest)) = line[2..].split_once(r#"","#) else { return };
        let Ok(test) = serde_json::from_str::<MochaTest>(rest.strip_suffix(']').unwrap_or(rest)) else {
            return;
        };
        if let Some(time) = test.duration.and_then(|time| milliseconds(&time.to_string())) {
            self.stream.add_time(&test.full_title, time);
        }
        if word == "fail" {
            let message = if test.stack.contains(&test.err) {
                test.stack
            } else {
                format!("{}\n{}", test.err, test.stack)
            };
            self.stream.add_failure(jest::failed(&test.full_title, &message));
        }
    }

    fn end_block(&mut self) {
        self.name.clear();
        if let Some(block) = self.block.take() {
            self.tally.add_failure(block.finish());
        }
    }
}
