//! Resolves references to earlier turns: `show the second one`, `who changed it?`, `now in docs`,
//! 那第三个呢.
//!
//! A reference is resolved only if every other word of the request is about reading, so `delete it`
//! is not. If nothing fits, the answer says so.

use std::ops::Range;

use super::{
    goal::PlanGoal,
    parsed_request::{LineSelection, ParsedRequest, SearchScope},
    phrases::AnswerPhrase,
    run::{FileLocation, MAX_REMEMBERED_LOCATIONS, NextAction, PlanResult, PlanRun},
    tokens::{RequestToken, numeral, tokenize},
    words::{self, WordClass},
};

/// Number of lines shown on each side of a place.
const CONTEXT_LINES: u64 = 3;

/// Words that a request may have besides a reference.
const LOOKS: &str = " show see display print cat open view read look at what what's is in inside contents content of give me the and now then \
    also only again please can could you just how many count lines line first last top head tail beginning end from to through who changed \
    wrote blame does do did have has about let's code ";
const LOOKS_CHINESE: &str = "看一下 看看 查看 看 打开 显示 展示 打印 读 内容 是什么 有什么 是谁 谁 什么 里面 里 最后 最近 开头 末尾 前 后 第 到 至 行 多少 几 \
    有 是 修改 改 写 过 的 了 再 那么 那 呢 吧 吗 请 帮我 给我 一下 把 也 还 然后 现在 一共 共 代码 只 文件";

/// Words around the one thing that changes when a request is repeated.
const AGAIN: &str = " and now in under inside what how about for the same also too then again directory folder files file but only please ";
const AGAIN_CHINESE: &str =
    "目录 文件夹 文件 里面 里 中 下 在 呢 那么 那 再 也 同样 换成 现在 然后 吧 找 看看";

/// Classes of verbs; a request about *it* must have one of them.
const VERBS: [WordClass; 4] = [WordClass::Show, WordClass::Count, WordClass::Who, WordClass::Line];

/// The results of earlier turns that a request can refer to.
#[derive(Debug, Default)]
pub(super) struct ConversationMemory {
    /// The entries of the last list, in order.
    listed: Vec<FileLocation>,
    /// The only file of the last answer.
    it: Option<FileLocation>,
    /// The last goal that was not about an entry of the list.
    goal: Option<PlanGoal>,
    /// The last goal about an entry of the list.
    goal_of_listed: Option<PlanGoal>,
}

/// The goal of a request, and whether it is about an entry of the list. In that case the list is
/// kept.
pub(super) struct ResolvedGoal {
    pub(super) goal: PlanGoal,
    is_from_list: bool,
}

/// The entry that a reference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceTarget {
    Number(usize),
    Last,
    It,
}

impl ConversationMemory {
    /// Returns the goal of a request in the context of earlier turns.
    pub(super) fn resolve(&self, request: &ParsedRequest) -> ResolvedGoal {
        if let Some(goal) = self.resolve_reference(request) {
            return ResolvedGoal { goal, is_from_list: true };
        }
        ResolvedGoal {
            goal: self.repeat_changed(request).unwrap_or_else(|| PlanGoal::from_request(request)),
            is_from_list: false,
        }
    }

    /// Records the results of a turn, if it is complete.
    pub(super) fn record_turn(&mut self, run: &PlanRun<'_>, wanted: ResolvedGoal, end: &PlanResult<String>) {
        let locations = run.remembered();
        let says = matches!(wanted.goal, PlanGoal::Say(_) | PlanGoal::Unaccounted { .. })
            || matches!(end, Err(NextAction::Decline(_)));
        if matches!(end, Err(NextAction::Call { .. }))
            || locations.is_empty() && (says || wanted.is_from_list)
        {
            return;
        }
        if wanted.is_from_list {
            self.goal_of_listed = Some(wanted.goal);
        } else {
            (self.goal, self.goal_of_listed) = (Some(wanted.goal), None);
        }
        let one =
            locations.first().filter(|first| locations.iter().all(|place| place.path == first.path)).cloned();
        if !wanted.is_from_list || one.is_none() {
            self.listed = locations;
        }
        self.it = one;
    }

    /// Returns the goal of a request that refers to an earlier result.
    fn resolve_reference(&self, request: &ParsedRequest) -> Option<PlanGoal> {
        let (span, which) = reference(&request.text)?;
        let (before, after) = (&request.text[..span.start], &request.text[span.end..]);
        let [before, after] = [before, after].map(tokenize);
        let looks = before.iter().chain(&after).all(|token| match token {
            RequestToken::Number(_) | RequestToken::Range(..) => true,
            token => is_among(token, LOOKS, LOOKS_CHINESE),
        });
        if !looks || which == ReferenceTarget::It && !request.has_any(&VERBS) {
            return None;
        }
        let place = match self.place(which) {
            Ok(place) => place,
            Err(missing) => return Some(PlanGoal::Say(missing)),
        };
        let name = RequestToken::Name(place.path.clone());
        let named = ParsedRequest::from_tokens(before.into_iter().chain([name]).chain(after).collect());
        Some(match PlanGoal::recognise(&named) {
            // The request has no verb: `and the third?`
            PlanGoal::Say(_) => self.repeat_for(place, named.part()),
            PlanGoal::Show { files, part } => PlanGoal::Show { files, part: place.part(part) },
            PlanGoal::Blame { file, line: None } => PlanGoal::Blame { file, line: place.line },
            goal => goal,
        })
    }

    fn place(&self, which: ReferenceTarget) -> Result<&FileLocation, AnswerPhrase> {
        match which {
            ReferenceTarget::It if self.listed.len() > 1 => self.it.as_ref().ok_or(AnswerPhrase::WhichOne),
            ReferenceTarget::It => self.it.as_ref().ok_or(AnswerPhrase::NothingBefore),
            // The list was truncated, so its last entry is unknown.
            ReferenceTarget::Last if self.listed.len() >= MAX_REMEMBERED_LOCATIONS => {
                Err(AnswerPhrase::WhichOne)
            }
            ReferenceTarget::Last => self.listed.last().ok_or(AnswerPhrase::NothingBefore),
            ReferenceTarget::Number(_) if self.listed.is_empty() => Err(AnswerPhrase::NothingBefore),
            ReferenceTarget::Number(number) => {
                number.checked_sub(1).and_then(|at| self.listed.get(at)).ok_or(AnswerPhrase::NotListed)
            }
        }
    }

    /// Repeats the last goal for another file.
    fn repeat_for(&self, place: &FileLocation, part: LineSelection) -> PlanGoal {
        let path = place.path.clone();
        match self.goal_of_listed.as_ref().or(self.goal.as_ref()) {
            Some(PlanGoal::Blame { .. }) => PlanGoal::Blame { file: path, line: place.line },
            Some(PlanGoal::CountLines(_)) => {
                PlanGoal::CountLines(SearchScope { place: Some(path), glob: None })
            }
            _ if path.ends_with('/') => PlanGoal::List { directory: Some(path) },
            _ => PlanGoal::Show { files: vec![path], part: place.part(part) },
        }
    }

    /// Repeats the last goal with one change: another place, kind of files, or search text.
    fn repeat_changed(&self, request: &ParsedRequest) -> Option<PlanGoal> {
        let mut goal = self.goal.clone()?;
        let is_lead = |token: &RequestToken| is_among(token, AGAIN, AGAIN_CHINESE);
        let mut others = request.tokens.iter().filter(|token| !is_lead(token));
        let (other, None) = (others.next()?, others.next()) else { return None };
        if request.tokens.len() == 1 {
            return None;
        }
        let kind = request.scope().glob.or_else(|| match other {
            RequestToken::Word(word) => words::extension(word).map(|extension| format!("*.{extension}")),
            _ => None,
        });
        let place = request.scope().place;
        match (&mut goal, other) {
            (PlanGoal::Search { texts, .. }, RequestToken::Symbol(text) | RequestToken::Quoted(text)) => {
                *texts = vec![text.clone()]
            }
            (PlanGoal::Define { name, .. }, RequestToken::Symbol(text) | RequestToken::Quoted(text)) => {
                name.clone_from(text)
            }
            (PlanGoal::Show { files, .. }, RequestToken::Name(name)) => *files = vec![name.clone()],
            (PlanGoal::List { directory }, RequestToken::Name(name) | RequestToken::Word(name)) => {
                *directory = Some(name.clone())
            }
            // After a search a single word could be a search text or a place.
            (PlanGoal::Search { .. }, RequestToken::Word(_)) if kind.is_none() && place.is_none() => {
                return None;
            }
            (goal, RequestToken::Name(name) | RequestToken::Word(name)) => {
                let scope = goal.scope_mut()?;
                match kind {
                    Some(glob) => scope.glob = Some(glob),
                    None => scope.place = Some(name.clone()),
                }
            }
            _ => return None,
        }
        Some(goal)
    }
}

impl FileLocation {
    /// Returns the requested lines, or the lines around the location if none are requested.
    fn part(&self, wanted: LineSelection) -> LineSelection {
        match (wanted, self.line) {
            (LineSelection::Whole, Some(line)) => LineSelection::Lines(
                line.saturating_sub(CONTEXT_LINES).max(1),
                line.saturating_add(CONTEXT_LINES),
            ),
            (part, _) => part,
        }
    }
}

/// Returns true if a token has only these words.
fn is_among(token: &RequestToken, english: &str, chinese: &str) -> bool {
    match token {
        RequestToken::Word(word) => english.contains(&format!(" {} ", word.to_lowercase())),
        RequestToken::Glyphs(text) => {
            chinese.split_whitespace().fold(text.clone(), |left, word| left.replace(word, "")).is_empty()
        }
        RequestToken::Quoted(_)
        | RequestToken::Name(_)
        | RequestToken::Symbol(_)
        | RequestToken::Number(_)
        | RequestToken::Range(..)
        | RequestToken::Option(_) => false,
    }
}

/// Finds a reference in a text: its range and its target.
fn reference(text: &str) -> Option<(Range<usize>, ReferenceTarget)> {
    english(text).or_else(|| chinese(text))
}

fn english(text: &str) -> Option<(Range<usize>, ReferenceTarget)> {
    const NOUNS: [&str; 8] = ["one", "file", "result", "hit", "match", "place", "entry", "item"];
    let mut end = 0;
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let start = end;
        end += word.len();
        let word = word.trim_end().trim_end_matches(['.', ',', '?', '!']);
        (start..start + word.len(), word.to_lowercase())
    });
    let words: Vec<_> = words.filter(|(_, word)| !word.is_empty()).collect();
    let word = |at: usize| words.get(at).map(|(_, word)| word.as_str());
    (0..words.len()).find_map(|at| {
        let noun = word(at + 1).is_some_and(|next| NOUNS.contains(&next));
        let ends = at + 1 == words.len();
        let (which, length) = match word(at)? {
            "it" | "its" => (ReferenceTarget::It, 1),
            "that" | "this" | "the" if noun => (ReferenceTarget::It, 2),
            "that" | "this" if ends && at > 0 => (ReferenceTarget::It, 1),
            // `line number 3` is not a reference.
            "number" if at == 0 || word(at - 1) != Some("line") => {
                (ReferenceTarget::Number(word(at + 1)?.parse().ok()?), 2)
            }
            each => (ordinal(each).filter(|_| noun || ends)?, if noun { 2 } else { 1 }),
        };
        Some((words[at].0.start..words[at + length - 1].0.end, which))
    })
}

/// Parses `second`, `2nd`, `#2`, `last`.
fn ordinal(word: &str) -> Option<ReferenceTarget> {
    const ORDINALS: [&str; 10] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    if word == "last" {
        return Some(ReferenceTarget::Last);
    }
    let named = ORDINALS.iter().position(|each| *each == word).map(|at| at + 1);
    let written = || {
        let ending = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending));
        ending.or_else(|| word.strip_prefix('#'))?.parse().ok()
    };
    named.or_else(written).map(ReferenceTarget::Number)
}

fn chinese(text: &str) -> Option<(Range<usize>, ReferenceTarget)> {
    const PHRASES: [(&str, ReferenceTarget); 8] = [
        ("最后一个", ReferenceTarget::Last),
        ("最后那个", ReferenceTarget::Last),
        ("这个文件", ReferenceTarget::It),
        ("那个文件", ReferenceTarget::It),
        ("该文件", ReferenceTarget::It),
        ("这个", ReferenceTarget::It),
        ("那个", ReferenceTarget::It),
        ("它", ReferenceTarget::It),
    ];
    const NOUNS: [&str; 5] = ["文件", "结果", "匹配", "位置", "地方"];
    let numbered = text.match_indices('第').find_map(|(start, mark)| {
        let rest = &text[start + mark.len()..];
        let end = rest.find(['个', '项', '条', '处'])?;
        let digits = rest[..end].trim();
        let number = digits.parse().ok().or_else(|| {
            let is_numeral = !digits.is_empty() && digits.chars().all(|c| "一二三四五六七八九十".contains(c));
            is_numeral.then(|| numeral(digits)).and_then(|number| usize::try_from(number).ok())
        })?;
        let measure = rest[end..].chars().next().map_or(0, char::len_utf8);
        Some((start..start + mark.len() + end + measure, ReferenceTarget::Number(number)))
    });
    let named_phrase = || {
        let (phrase, which) = PHRASES.iter().find(|(phrase, _)| text.contains(phrase))?;
        let start = text.find(phrase)?;
        Some((start..start + phrase.len(), *which))
    };
    let (span, which) = numbered.or_else(named_phrase)?;
    let noun = NOUNS.iter().find(|noun| text[span.end..].starts_with(**noun)).map_or(0, |noun| noun.len());
    Some((span.start..span.end + noun, which))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_before_is_recognised() {
        for (text, found) in [
            ("show the second one, please", Some(("second one", ReferenceTarget::Number(2)))),
            ("and the 3rd?", Some(("3rd", ReferenceTarget::Number(3)))),
            ("open #4", Some(("#4", ReferenceTarget::Number(4)))),
            ("show number 12", Some(("number 12", ReferenceTarget::Number(12)))),
            ("show line number 12", None),
            ("the last file", Some(("last file", ReferenceTarget::Last))),
            ("show the first 5 lines of that file", Some(("that file", ReferenceTarget::It))),
            ("show its first 5 lines", Some(("its", ReferenceTarget::It))),
            ("show the last commit", None),
            ("再看第十二个文件吧", Some(("第十二个文件", ReferenceTarget::Number(12)))),
            ("第 2 处", Some(("第 2 处", ReferenceTarget::Number(2)))),
            ("第三行", None),
            ("第三行到第五行", None),
            ("最后一个呢", Some(("最后一个", ReferenceTarget::Last))),
            ("打开它", Some(("它", ReferenceTarget::It))),
        ] {
            let seen = reference(text).map(|(span, which)| (&text[span], which));
            assert_eq!(seen, found, "{text}");
        }
    }
}
