//! `windlass policy classify`: many commands, one JSON object per line in and out.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{LineJudge, why, word};
use crate::{exit::ProgramExit, problem::CliProblem, setup::ProgramSetup};

/// Maximum size of a line. A command cannot be longer than 128 KiB, and JSON needs at most six
/// bytes for one.
const MAX_LINE_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
struct ClassifyRequest {
    id: Value,
    cmd: String,
}

pub(super) fn run(setup: &ProgramSetup) -> Result<ProgramExit, CliProblem> {
    let judge = LineJudge::new(setup)?;
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = BufWriter::new(io::stdout().lock());
    match answer_all(&judge, &mut input, &mut output, &|text| crate::note(text)) {
        Ok(0) => Ok(ProgramExit::Done),
        Ok(_) => Ok(ProgramExit::Failed),
        // The reader closed early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ProgramExit::Done),
        Err(error) => Err(CliProblem::failed(format!("cannot continue: {error}"))),
    }
}

/// Answers every line, and counts the malformed ones.
fn answer_all(
    judge: &LineJudge,
    input: &mut BufReader<impl Read>,
    output: &mut impl Write,
    complain: &dyn Fn(&str),
) -> io::Result<usize> {
    let mut bad = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let whole = line.len() <= MAX_LINE_BYTES;
        if !whole {
            skip_line(input)?;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = match request(&line, whole) {
            Ok(ClassifyRequest { id, cmd }) => {
                let (ruling, judgement) = judge.line(&cmd);
                json!({"id": id, "decision": word(ruling), "why": why(ruling, &judgement)})
            }
            Err((id, problem)) => {
                bad += 1;
                complain(&format!("line {number}: {problem}; answered as `prompt`"));
                json!({"id": id, "decision": "prompt", "why": format!("line {number}: {problem}")})
            }
        };
        writeln!(output, "{answer}")?;
        // Flush for a client that waits for an answer before the next request.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    output.flush()?;
    Ok(bad)
}

fn request(line: &[u8], whole: bool) -> Result<ClassifyRequest, (Value, String)> {
    if !whole {
        return Err((Value::Null, format!("it has more than {MAX_LINE_BYTES} bytes")));
    }
    serde_json::from_slice(line).map_err(|error| {
        let id = serde_json::from_slice::<Value>(line).ok().and_then(|line| line.get("id").cloned());
        (id.unwrap_or_default(), format!("it is not `{{\"id\", \"cmd\"}}`: {error}"))
    })
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &[u8]) -> (Vec<Value>, usize) {
        let judge = LineJudge::for_tests();
        let mut output = Vec::new();
        let bad = answer_all(&judge, &mut BufReader::new(input), &mut output, &|_| {}).unwrap();
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (lines.map(|line| serde_json::from_slice(line).unwrap()).collect(), bad)
    }

    #[test]
    fn every_line_is_answered_in_order() {
        let (answers, bad) = answers(
            b"{\"id\": 1, \"cmd\": \"ls\"}\n\n{\"id\": \"b\", \"cmd\": \"make\"}\n{\"id\": 3, \"cmd\": \"rm -rf /\"}",
        );
        let decisions: Vec<_> =
            answers.iter().map(|each| (each["id"].clone(), each["decision"].clone())).collect();
        assert_eq!(
            decisions,
            [(json!(1), json!("safe")), (json!("b"), json!("prompt")), (json!(3), json!("forbidden"))]
        );
        assert_eq!(bad, 0);
    }

    #[test]
    fn an_effect_beyond_the_machine_is_the_reason_for_its_question() {
        let (answers, _) = answers(b"{\"id\": 1, \"cmd\": \"git push\"}\n{\"id\": 2, \"cmd\": \"make\"}");
        assert_eq!(answers[0]["why"], "it pushes to a repository that others share (effect `push`)");
        assert_eq!(
            answers[1]["why"],
            "`make` is not known to be harmless: `make` is not on the list of harmless programs"
        );
    }

    #[test]
    fn a_bad_line_is_a_question_and_the_next_ones_are_still_read() {
        let long = [&b"{\"id\": 2, \"cmd\": \""[..], &vec![b'x'; 2 * MAX_LINE_BYTES], b"\"}\n"].concat();
        let input = [
            b"not json\n",
            &long[..],
            b"{\"id\": 3}\n",
            b"{\"id\": 4, \"cmd\": \"\xff\"}\n",
            b"{\"id\": 5, \"cmd\": \"ls\"}\n",
        ]
        .concat();
        let (answers, bad) = answers(&input);
        let decisions: Vec<_> =
            answers.iter().map(|each| (each["id"].clone(), each["decision"].clone())).collect();
        let prompt = || json!("prompt");
        assert_eq!(
            decisions,
            [
                (Value::Null, prompt()),
                (Value::Null, prompt()),
                (json!(3), prompt()),
                (Value::Null, prompt()),
                (json!(5), json!("safe"))
            ]
        );
        assert_eq!(bad, 4);
        assert_eq!(
            answers[2]["why"],
            "line 3: it is not `{\"id\", \"cmd\"}`: missing field `cmd` at line 1 column 9"
        );
    }
}
