//! Compound requests: `run the tests, then show git status`, 先跑测试，再看 git 状态. Either every part is
//! understood and all are done in order, or none is done.

use super::{
    goal::PlanGoal,
    parsed_request::ParsedRequest,
    phrases::AnswerPhrase,
    run::{NextAction, PlanResult, PlanRun},
    tokens::{RequestToken, quotation},
};

/// A part of a request, and its goal.
pub(super) struct RequestPart {
    text: String,
    request: ParsedRequest,
    goal: PlanGoal,
}

/// Separators of parts, the longest first. A weak separator may also occur within a part.
const STRONG: [&str; 14] = [
    ", and then ",
    "，然后再",
    "，然后",
    " and then ",
    ", then ",
    "，最后",
    "，接着",
    "，再",
    "；",
    "; ",
    " then ",
    "然后再",
    "然后",
    "。",
];
const WEAK: [&str; 8] = [", and ", ", ", ". ", " and ", "，并且", "，并", "，", "并"];

/// Words at the beginning of a part that only give its order.
const LEADS: [&str; 9] = ["first ", "then ", "finally ", "now ", "also ", "先", "再", "然后", "最后"];

/// Words that refer to another part.
const REFERENCES: [&str; 12] =
    [" it ", " there ", " inside ", " them ", " that ", " this ", "里面", "那里", "其中", "它", "该", "这个"];

/// Returns the parts of a request, if there are several and every one is understood alone.
pub(super) fn understood_parts(request: &ParsedRequest) -> Option<Vec<RequestPart>> {
    let forbids = request.changes_nothing || request.runs_nothing;
    let all: Vec<_> = STRONG.into_iter().chain(WEAK).collect();
    [&STRONG[..], &all].into_iter().filter(|_| !forbids).find_map(|marks| {
        let parts = divide(&request.text, marks);
        let read = parts.into_iter().map(|text| {
            let request = ParsedRequest::new(text);
            let goal = PlanGoal::from_request(&request);
            // A single name has no verb: `delete a.txt and b.txt`.
            let is_bare = matches!(
                request.tokens[..],
                [RequestToken::Name(_)
                    | RequestToken::Word(_)
                    | RequestToken::Symbol(_)
                    | RequestToken::Quoted(_)]
            );
            // The end of a command without quotes is unknown.
            let is_open = matches!(goal, PlanGoal::Run { .. }) && request.quoted().is_empty();
            // A part that is incomplete, or depends on the one before, is not completed.
            let is_partial = matches!(
                goal,
                PlanGoal::SetValue { file: None, .. } | PlanGoal::LeaveAlone { .. } | PlanGoal::RunNothing
            );
            let refers = goal.acts() && REFERENCES.iter().any(|word| format!(" {text} ").contains(word));
            let is_whole = goal.is_understood() && !is_bare && !is_open && !is_partial && !refers;
            is_whole.then(|| RequestPart { text: text.to_owned(), request, goal })
        });
        read.collect::<Option<Vec<_>>>().filter(|parts| parts.len() > 1)
    })
}

/// Splits a text at these separators, but not within quotations.
fn divide<'a>(text: &'a str, marks: &[&str]) -> Vec<&'a str> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(c) = text[at..].chars().next() {
        if let Some((_, after)) = quotation(&text[at..], at, text) {
            at = text.len() - after.len();
        } else if let Some(mark) = marks.iter().find(|mark| text[at..].starts_with(**mark)) {
            parts.push(&text[start..at]);
            at += mark.len();
            start = at;
        } else {
            at += c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    let lead = |part: &'a str| {
        let part = part.trim();
        LEADS.iter().find_map(|lead| part.strip_prefix(lead)).unwrap_or(part).trim()
    };
    parts.into_iter().map(lead).filter(|part| !part.is_empty()).collect()
}

impl PlanRun<'_> {
    /// Does one part after the other. After a failure only parts that read are done.
    pub(super) fn reach_all(&self, parts: &[RequestPart]) -> PlanResult<String> {
        let (mut answers, mut failed) = (Vec::new(), false);
        for RequestPart { text, request, goal } in parts {
            if failed && goal.acts() {
                answers.push(self.say(AnswerPhrase::PartLeft, &[text]));
                continue;
            }
            self.start_part();
            match self.reach(goal, request) {
                Err(call @ NextAction::Call { .. }) => return Err(call),
                Err(NextAction::Decline(answer)) => {
                    failed = true;
                    answers.push(answer);
                }
                Ok(answer) | Err(NextAction::Say(answer)) => answers.push(answer),
            }
        }
        let answer = answers.join("\n\n");
        if failed { Err(NextAction::Decline(answer)) } else { Ok(answer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_done_in_parts_only_if_each_is_understood() {
        for (request, parts) in [
            ("run the tests, then show git status", Some(2)),
            ("先跑测试，再看 git 状态", Some(2)),
            ("show a.py; how many lines does b.py have", Some(2)),
            ("show \"a, then b\"", None),
            ("delete a.txt and b.txt", None),
            ("delete a.txt, except on Sundays", None),
            ("run the tests, then deploy", None),
            ("列出 src 目录下的文件，不要 main.py", None),
            ("find TODO in src and docs", None),
            ("创建目录 build 并在里面新建 a.txt", None),
            ("copy a.toml to b.toml and set debug to true", None),
            ("不要删除 a.txt，删除 b.txt", None),
        ] {
            let found = understood_parts(&ParsedRequest::new(request)).map(|parts| parts.len());
            assert_eq!(found, parts, "{request}");
        }
    }
}
