//! Parses the intent of a request: the operation, its targets and its constraints.
//!
//! It works by rules, in English and Chinese. A request that is not understood is
//! [`ToolOperation::Other`] and forbids nothing.

mod negation;
mod target;

use std::sync::LazyLock;

use serde::Serialize;

use crate::{
    hash::WordMap,
    request::spans,
    text::{self, TextToken},
};

pub use negation::RequestConstraint;
pub(crate) use target::is_path;
pub use target::{RequestTarget, TargetKind};

/// The intent of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestIntent {
    /// The requested operation.
    pub operation: ToolOperation,
    /// The paths, addresses and quotations that it names.
    pub targets: Vec<RequestTarget>,
    /// Conditions that must hold.
    pub constraints: Vec<RequestConstraint>,
    /// Words that the request rejects, such as the name of a tool.
    pub unwanted: Vec<String>,
    /// True if a whole object is to be deleted and not a part of it: `delete the file`, but not
    /// `delete line 3 of it`.
    #[serde(skip)]
    pub(crate) deletes_whole: bool,
}

/// The kind of operation of a request or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOperation {
    /// Read a known object.
    Read,
    /// Find something.
    Search,
    /// Create something.
    Write,
    /// Change an existing object.
    Edit,
    /// Delete something.
    Delete,
    /// Run a program.
    Execute,
    /// Check that something works.
    Test,
    /// Any other operation.
    Other,
}

impl ToolOperation {
    /// Returns the agreement of a tool with the requested operation, from -1.5 to 1; 0 if either is
    /// unknown.
    pub(crate) fn agreement(self, tool: Self) -> f32 {
        match (self, tool) {
            (Self::Other, _) | (_, Self::Other) => 0.0,
            (wanted, done) if wanted == done => 1.0,
            (Self::Read | Self::Search | Self::Test, Self::Read | Self::Search | Self::Test) => 0.5,
            (Self::Read | Self::Search | Self::Test, _) => -1.5,
            (_, Self::Read | Self::Search | Self::Test) => -0.5,
            (Self::Delete, _) | (_, Self::Delete) => -1.0,
            _ => 0.0,
        }
    }

    /// Returns true if the operation changes something.
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Edit | Self::Delete | Self::Execute)
    }
}

impl RequestIntent {
    /// Parses a request.
    pub fn parse(text: &str) -> Self {
        let negation::RequestNegations { constraints, unwanted, rest } = negation::negations(text);
        let operation = operation(&rest);
        let deletes_whole = operation == ToolOperation::Delete && !is_about_part(&rest);
        Self { operation, targets: target::targets(text), constraints, unwanted, deletes_whole }
    }

    /// Returns true if the request has this constraint.
    pub fn demands(&self, constraint: RequestConstraint) -> bool {
        self.constraints.contains(&constraint)
    }
}

/// Returns true if the text is about a part of an object, such as lines, or words in it.
fn is_about_part(text: &str) -> bool {
    const MARKS: [&str; 12] = [
        "line", "lines", "from", "in", "of", "word", "words", "text", "comment", "comments", "import",
        "imports",
    ];
    let word = |word: &str| MARKS.contains(&word.to_lowercase().as_str());
    text.split(|c: char| !c.is_alphanumeric()).any(word)
        || ["行", "里", "中", "注释"].iter().any(|mark| text.contains(mark))
}

/// Returns the operation that the name of a tool suggests.
pub(crate) fn operation_of_name(name: &str) -> ToolOperation {
    let mut found = None;
    text::tokenize(name, |token| found = found.or_else(|| english(token.text())));
    found.unwrap_or(ToolOperation::Other)
}

/// Returns the operation of the first verb; `show me how to delete` is about showing.
fn operation(text: &str) -> ToolOperation {
    let mut first = None;
    for span in spans(text).into_iter().filter(|span| !span.is_quoted) {
        text::tokenize(span.text, |token| {
            if let TextToken::Word(word) = token {
                first = first.or_else(|| english(word));
            }
        });
    }
    chinese(text).or(first).unwrap_or(ToolOperation::Other)
}

fn english(word: &str) -> Option<ToolOperation> {
    static STEMS: LazyLock<WordMap<String, ToolOperation>> = LazyLock::new(|| {
        let words = ENGLISH
            .iter()
            .flat_map(|(operation, words)| words.iter().map(|word| (text::stem(word), *operation)));
        words.collect()
    });
    STEMS.get(&text::stem(word)).copied()
}

/// Returns the operation of the first Chinese verb in a text.
fn chinese(text: &str) -> Option<ToolOperation> {
    let places = CHINESE.iter().flat_map(|(operation, words)| {
        words.iter().filter_map(|word| text.find(word).map(|at| (at, word.len(), *operation)))
    });
    places.min_by_key(|(at, length, _)| (*at, usize::MAX - *length)).map(|(_, _, operation)| operation)
}

const ENGLISH: [(ToolOperation, &[&str]); 7] = [
    (
        ToolOperation::Read,
        &[
            "read",
            "show",
            "view",
            "open",
            "display",
            "print",
            "cat",
            "get",
            "fetch",
            "describe",
            "explain",
            "tell",
            "check",
            "list",
            "look",
            "see",
            "retrieve",
            "summarize",
            "what",
            "who",
            "when",
            "which",
            "how",
            "calculate",
            "compute",
            "count",
            "compare",
            "provide",
            "know",
            "determine",
        ],
    ),
    (
        ToolOperation::Search,
        &["find", "search", "grep", "locate", "lookup", "where", "query", "discover", "browse"],
    ),
    (ToolOperation::Test, &["test", "verify", "validate", "lint", "benchmark"]),
    (
        ToolOperation::Delete,
        &["delete", "remove", "erase", "drop", "clear", "uninstall", "unlink", "purge", "cancel"],
    ),
    (
        ToolOperation::Edit,
        &[
            "edit", "change", "modify", "update", "replace", "rename", "move", "fix", "refactor", "set",
            "append", "insert", "patch", "merge", "convert", "rewrite", "adjust", "reset",
        ],
    ),
    (
        ToolOperation::Write,
        &[
            "write", "create", "add", "make", "save", "generate", "new", "build", "compose", "draft", "send",
            "post", "publish", "upload", "book", "order", "register", "schedule", "copy", "buy", "pay",
            "transfer", "reserve", "submit", "commit", "push",
        ],
    ),
    (
        ToolOperation::Execute,
        &[
            "run", "execute", "start", "launch", "install", "deploy", "stop", "kill", "restart", "invoke",
            "play", "turn", "control",
        ],
    ),
];

const CHINESE: [(ToolOperation, &[&str]); 7] = [
    (
        ToolOperation::Read,
        &[
            "查看",
            "看看",
            "看一下",
            "读取",
            "读一下",
            "显示",
            "打开",
            "列出",
            "展示",
            "告诉",
            "解释",
            "获取",
            "总结",
            "介绍",
        ],
    ),
    (
        ToolOperation::Search,
        &["查找", "搜索", "找到", "找出", "查询", "检索", "寻找", "在哪", "哪里", "查一下", "找"],
    ),
    (ToolOperation::Test, &["测试", "验证", "检验", "校验"]),
    (ToolOperation::Delete, &["删除", "移除", "删掉", "清除", "清空", "卸载", "取消", "去掉"]),
    (
        ToolOperation::Edit,
        &[
            "修改",
            "编辑",
            "更改",
            "改成",
            "替换",
            "更新",
            "重命名",
            "移动",
            "修复",
            "调整",
            "设置",
            "追加",
            "插入",
            "合并",
            "改为",
            "转换",
        ],
    ),
    (
        ToolOperation::Write,
        &[
            "创建", "新建", "写入", "写一", "添加", "生成", "保存", "制作", "发送", "上传", "预订", "预定",
            "发布", "复制", "购买", "支付", "转账", "提交", "注册",
        ],
    ),
    (ToolOperation::Execute, &["运行", "执行", "启动", "安装", "部署", "停止", "重启"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_work_decides() {
        let cases = [
            ("show me how to delete a file", ToolOperation::Read),
            ("Please find the TODOs and fix them", ToolOperation::Search),
            ("running the tests", ToolOperation::Execute),
            ("把配置里的端口改成 8080", ToolOperation::Edit),
            ("删除 build 目录", ToolOperation::Delete),
            ("hello", ToolOperation::Other),
            ("", ToolOperation::Other),
        ];
        for (text, operation) in cases {
            assert_eq!(RequestIntent::parse(text).operation, operation, "{text}");
        }
    }

    #[test]
    fn what_is_forbidden_is_not_what_is_asked_for() {
        let intent = RequestIntent::parse("Don't delete anything, just rename the folder");
        assert_eq!(intent.operation, ToolOperation::Edit);
    }
}
