//! Parses the negations of a request.

use serde::Serialize;

/// A condition that must hold for every action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestConstraint {
    /// Nothing may be changed.
    ChangeNothing,
    /// No program may be started.
    RunNothing,
    /// The network may not be used.
    StayOffline,
}

/// The constraints in a text, and the text without them.
pub(crate) struct RequestNegations {
    pub(crate) constraints: Vec<RequestConstraint>,
    pub(crate) unwanted: Vec<String>,
    pub(crate) rest: String,
}

/// Words that negate the following words. Longer Chinese ones come first.
const NOT: [&str; 13] = [
    "do not",
    "don't",
    "don’t",
    "dont",
    "without",
    "never",
    "must not",
    "mustn't",
    "should not",
    "shouldn't",
    "cannot",
    "avoid",
    "no need to",
];
const NOT_CHINESE: [&str; 13] = [
    "千万不要",
    "请不要",
    "不要",
    "不得",
    "不能",
    "不许",
    "不准",
    "禁止",
    "切勿",
    "无需",
    "请勿",
    "别",
    "勿",
];

/// Verbs after a negation, and objects after the verb that mean everything. `don't change the
/// title` is about the title only and forbids nothing else.
const CHANGING: [&str; 18] = [
    "change",
    "changing",
    "modify",
    "modifying",
    "edit",
    "editing",
    "write",
    "writing",
    "touch",
    "touching",
    "alter",
    "altering",
    "delete",
    "deleting",
    "overwrite",
    "overwriting",
    "making changes",
    "make changes",
];
const RUNNING: [&str; 6] = ["run", "running", "execute", "executing", "start", "starting"];
const CONNECTING: [&str; 10] = [
    "use the network",
    "using the network",
    "use the internet",
    "using the internet",
    "network",
    "internet",
    "going online",
    "go online",
    "the network",
    "the internet",
];
const EVERYTHING: [&str; 22] = [
    "",
    "anything",
    "any files",
    "any file",
    "files",
    "the files",
    "any of the files",
    "any code",
    "code",
    "the code",
    "it",
    "them",
    "any commands",
    "any command",
    "commands",
    "any programs",
    "programs",
    "nothing",
    "any of it",
    "the file",
    "any data",
    "to any files",
];

const CHANGING_CHINESE: [&str; 14] = [
    "做任何修改",
    "做任何改动",
    "进行修改",
    "修改",
    "改动",
    "更改",
    "变更",
    "编辑",
    "写入",
    "删除",
    "改变",
    "覆盖",
    "改",
    "动",
];
const RUNNING_CHINESE: [&str; 3] = ["运行", "执行", "启动"];
const CONNECTING_CHINESE: [&str; 5] = ["联网", "上网", "使用网络", "访问网络", "连接网络"];
const EVERYTHING_CHINESE: [&str; 22] = [
    "",
    "任何东西",
    "任何文件",
    "任何内容",
    "任何代码",
    "任何命令",
    "任何程序",
    "任何",
    "文件",
    "代码",
    "命令",
    "程序",
    "它",
    "它们",
    "东西",
    "内容",
    "一切",
    "我的文件",
    "任何数据",
    "这些文件",
    "原文件",
    "文件内容",
];

/// Words that forbid changes without a negation.
const LOOK_ONLY: [&str; 10] = [
    "read-only",
    "read only",
    "readonly",
    "dry run",
    "dry-run",
    "just look",
    "only look",
    "只读",
    "只看不",
    "仅查看",
];

/// Parses the negations of a text, clause by clause.
pub(crate) fn negations(text: &str) -> RequestNegations {
    let lower = text.to_lowercase();
    let mut found = RequestNegations { constraints: Vec::new(), unwanted: Vec::new(), rest: String::new() };
    if LOOK_ONLY.iter().any(|words| lower.contains(words)) {
        found.constraints.push(RequestConstraint::ChangeNothing);
    }
    for clause in
        lower.split(['.', ',', ';', '!', '?', '\n', '。', '，', '；', '！', '？', '、', '(', ')', '（', '）'])
    {
        match negated(clause) {
            Some((before, after, is_chinese)) => {
                found.rest.push_str(before);
                found.read(after, is_chinese);
            }
            None => found.rest.push_str(clause),
        }
        found.rest.push('\n');
    }
    found.constraints.dedup();
    found
}

/// Returns the text before and after the first negation of a clause, and whether it is Chinese.
fn negated(clause: &str) -> Option<(&str, &str, bool)> {
    let english = NOT.iter().filter_map(|word| {
        let at = clause.find(word)?;
        let ends = clause[at + word.len()..].starts_with(|c: char| !c.is_alphanumeric());
        let begins = !clause[..at].ends_with(char::is_alphanumeric);
        (ends && begins).then_some((at, word.len(), false))
    });
    let chinese = NOT_CHINESE.iter().filter_map(|word| clause.find(word).map(|at| (at, word.len(), true)));
    let (at, length, is_chinese) =
        english.chain(chinese).min_by_key(|(at, length, _)| (*at, usize::MAX - length))?;
    Some((&clause[..at], clause[at + length..].trim(), is_chinese))
}

impl RequestNegations {
    fn read(&mut self, after: &str, is_chinese: bool) {
        let tables: [(RequestConstraint, &[&str]); 3] = if is_chinese {
            [
                (RequestConstraint::ChangeNothing, &CHANGING_CHINESE),
                (RequestConstraint::RunNothing, &RUNNING_CHINESE),
                (RequestConstraint::StayOffline, &CONNECTING_CHINESE),
            ]
        } else {
            [
                (RequestConstraint::ChangeNothing, &CHANGING),
                (RequestConstraint::RunNothing, &RUNNING),
                (RequestConstraint::StayOffline, &CONNECTING),
            ]
        };
        // `changing or deleting any files`: joined verbs are parsed one by one.
        let joints: &[&str] = if is_chinese { &["或者", "或", "和"] } else { &[" or ", " and "] };
        let last = joints.iter().filter_map(|joint| after.rfind(joint).map(|at| at + joint.len())).max();
        for (constraint, verbs) in tables {
            let says = |text: &str| {
                let object =
                    verbs.iter().filter_map(|verb| text.strip_prefix(verb)).min_by_key(|rest| rest.len());
                object.is_some_and(|object| {
                    let object = object.trim().trim_end_matches("了").trim_end_matches(" please");
                    if is_chinese {
                        EVERYTHING_CHINESE.contains(&object)
                    } else {
                        EVERYTHING.contains(&object)
                    }
                })
            };
            let joined = joints.iter().find_map(|joint| after.split_once(joint)).map(|(first, _)| first);
            let tail = last.map(|at| &after[at..]);
            if says(after) || joined.is_some_and(says) || tail.is_some_and(says) {
                self.constraints.push(constraint);
            }
        }
        let used = ["using ", "use ", "calling ", "call ", "用", "使用", "调用"]
            .iter()
            .filter_map(|verb| after.strip_prefix(verb))
            .min_by_key(|rest| rest.len());
        if let Some(name) = used {
            let name = name.trim_start_matches("the ").trim();
            let end =
                name.find(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c)).unwrap_or(name.len());
            self.unwanted.extend(Some(name[..end].to_owned()).filter(|name| !name.is_empty()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraints(text: &str) -> Vec<RequestConstraint> {
        negations(text).constraints
    }

    #[test]
    fn a_request_can_forbid_every_change() {
        for text in [
            "Look at the config but don't change anything.",
            "Do not modify any files",
            "List the errors, without changing or deleting files",
            "explain this, read-only",
            "只看一下配置，不要修改任何文件",
            "帮我检查代码，别改",
            "不要改动",
        ] {
            assert_eq!(constraints(text), [RequestConstraint::ChangeNothing], "{text}");
        }
    }

    #[test]
    fn a_request_that_spares_one_thing_forbids_no_other() {
        for text in [
            "Rename it but don't change the title",
            "不要修改标题，只改正文",
            "delete the file",
            "I can't write well",
        ] {
            assert_eq!(constraints(text), [], "{text}");
        }
    }

    #[test]
    fn running_and_connecting_can_be_forbidden() {
        assert_eq!(constraints("Explain it without running any commands"), [RequestConstraint::RunNothing]);
        assert_eq!(
            constraints("不要执行任何命令，也不要联网"),
            [RequestConstraint::RunNothing, RequestConstraint::StayOffline]
        );
        assert_eq!(constraints("answer without using the internet"), [RequestConstraint::StayOffline]);
    }

    #[test]
    fn a_tool_can_be_unwanted_by_name() {
        assert_eq!(negations("Search for it, but do not use grep_files").unwanted, ["grep_files"]);
        assert_eq!(negations("不要用 shell，直接读文件").unwanted, ["shell"]);
    }
}
