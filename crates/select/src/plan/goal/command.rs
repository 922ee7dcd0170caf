//! Requests that run something.

use super::{PlanGoal, change::says_only};
use crate::{
    plan::{parsed_request::ParsedRequest, phrases::AnswerPhrase, tokens::RequestToken, words::WordClass},
    text::is_glyph,
};

/// Programs that identify a command without quotes.
const PROGRAMS: &str = " awk basename bun cargo cat cmake cp curl cut date deno df diff dirname docker du echo env file find git go gradle grep \
    head id java javac jq kubectl ls make mkdir mvn mv node npm npx perl php pip pip3 pnpm printenv printf ps pwd pytest python python3 rg rm ruby \
    rustc rustup sed seq sh bash sleep sort stat tail tar touch tr tree true false uname uniq wc which whoami xargs yarn zip ";

/// Verbs before a command, words before the verb, and words between the verb and the command.
const VERBS: [&str; 7] = ["run ", "run:", "execute ", "execute:", "exec ", "运行", "执行"];
const BEFORE: [&str; 9] = ["please", "can you", "could you", "now", "请", "帮我", "麻烦", "给我", ","];
const BETWEEN: [&str; 12] = [
    "the command",
    "this command",
    "command",
    "this",
    "please",
    "命令",
    "指令",
    "一下",
    "以下",
    "：",
    ":",
    "下",
];

/// Recognises a command that is spelled out.
pub(super) fn run(request: &ParsedRequest) -> Option<PlanGoal> {
    if let Some(command) = after_colon(&request.text) {
        return Some(PlanGoal::Run { command: command.to_owned() });
    }
    let command = match request.quoted()[..] {
        [command] if request.has(WordClass::Run) => {
            let words = "run execute exec launch command and show print output result of what tell its";
            says_only(request, words, "运行 执行 跑 命令 指令 以下 下 并 显示 输出 结果 看看")
                .then_some(command)?
        }
        _ => match command_after_verb(&request.text)? {
            command if has_sentence_words(command) => return Some(PlanGoal::Say(AnswerPhrase::WhichCommand)),
            command => command,
        },
    };
    Some(PlanGoal::Run { command: command.to_owned() })
}

/// Parses `run the command: X`. Everything after the colon is the command, except quotes around all
/// of it.
fn after_colon(text: &str) -> Option<&str> {
    let start = strip_leading(text, &BEFORE);
    let verb = ["run", "execute", "exec", "运行", "执行", "跑"]
        .iter()
        .find(|verb| start.get(..verb.len()).is_some_and(|head| head.eq_ignore_ascii_case(verb)))?;
    let between = [
        "the",
        "this",
        "following",
        "shell",
        "command",
        "以下",
        "下面的",
        "下面",
        "这条",
        "命令",
        "指令",
        "一下",
    ];
    let command = strip_leading(&start[verb.len()..], &between).strip_prefix([':', '：'])?.trim();
    let quoted = [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”')].into_iter().find_map(|(open, close)| {
        let inner = command.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains([open, close])).then_some(inner)
    });
    Some(quoted.unwrap_or(command)).filter(|command| !command.is_empty())
}

/// Words of a sentence. If one follows an unquoted command, the end of the command is unknown.
const SENTENCE: &str = " and then please tell what which how why if so to for me in on at from of with until unless when because but or only once \
    twice again now after before afterwards also first next the a an my our your it its this that i you we ";

/// Returns the text after the verb, if the request begins with the verb and the text with a
/// program.
fn command_after_verb(text: &str) -> Option<&str> {
    let start = strip_leading(text, &BEFORE);
    let verb = VERBS
        .iter()
        .find(|verb| start.get(..verb.len()).is_some_and(|head| head.eq_ignore_ascii_case(verb)))?;
    let command = strip_leading(&start[verb.len()..], &BETWEEN).trim_end_matches(['。', '？', '！']);
    let program = command.split_whitespace().next()?;
    (PROGRAMS.contains(&format!(" {program} ")) || program.starts_with("./")).then_some(command)
}

/// Returns true if the text after the program has more than arguments.
fn has_sentence_words(command: &str) -> bool {
    let says = |word: &str| {
        let word = format!(" {} ", word.trim_end_matches(['.', ',', ';', ':', '!', '?']).to_lowercase());
        SENTENCE.contains(&word) || WordClass::Show.place(&word).is_some()
    };
    let chinese = command.contains('，') || command.contains(is_glyph);
    chinese || command.contains(", ") || command.split_whitespace().skip(1).any(says)
}

/// Removes these words from the beginning of a text.
fn strip_leading<'a>(text: &'a str, words: &[&str]) -> &'a str {
    let mut text = text.trim();
    let starts = |text: &'a str, word: &str| {
        text.get(..word.len())
            .filter(|head| head.eq_ignore_ascii_case(word))
            .map(|_| text[word.len()..].trim_start())
    };
    while let Some(after) = words.iter().find_map(|word| starts(text, word)) {
        text = after;
    }
    text
}

/// Words that select some tests.
const FAILING: [&str; 7] = ["failing", "failed", "fails", "fail", "passing", "passed", "pass"];

/// Recognises a request to run the tests of the project.
pub(super) fn test(request: &ParsedRequest) -> Option<PlanGoal> {
    let wanted = request.has(WordClass::Test) && request.has_any(&[WordClass::Run, WordClass::Outcome]);
    if !wanted || request.has_any(&[WordClass::Count, WordClass::Commit, WordClass::Not]) {
        return None;
    }
    // `run the failing tests` means only some of them.
    let fails = request.words().any(|word| FAILING.contains(&word.to_lowercase().as_str()));
    if request.has(WordClass::Run) && (fails || request.text.contains("失败的测试")) {
        return None;
    }
    let code = request.has(WordClass::Show)
        && request.has_any(&[WordClass::Code, WordClass::Failure])
        && request.has(WordClass::Run);
    let filter = request.terms().first().map(|term| (*term).to_owned());
    Some(PlanGoal::Test { filter, code })
}

/// Recognises an order to git by its first word; `the last commit` is not an order.
pub(super) fn git_order(request: &ParsedRequest) -> Option<PlanGoal> {
    let first = match request.tokens.first()? {
        RequestToken::Word(word) => format!(" {} ", word.to_lowercase()),
        RequestToken::Glyphs(text) => text.clone(),
        _ => return None,
    };
    let undoes = WordClass::Undo.place(&first).map(|_| PlanGoal::Say(AnswerPhrase::UndoIsACommand));
    undoes.or_else(|| WordClass::Act.place(&first).map(|_| PlanGoal::Say(AnswerPhrase::WhichCommand)))
}

/// Recognises a request to run something without a command.
pub(super) fn unspecified(request: &ParsedRequest) -> Option<PlanGoal> {
    request.has(WordClass::Run).then_some(PlanGoal::Say(AnswerPhrase::WhichCommand))
}
