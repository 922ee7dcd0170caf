//! Accounts for every word of a request.
//!
//! A word must be common, belong to the vocabulary of the goal, or name an object of the goal. Any
//! other word could change the meaning of the request (`except the tests`, `per author`, `this
//! week`), so the request is declined.

use std::{cell::RefCell, iter};

use super::{CommitQuery, FileRanking, HistoryStart, PlanGoal, SearchOutput};
use crate::{
    plan::{
        parsed_request::{LOG_FILES, LineSelection, ParsedRequest, SearchScope},
        tokens::RequestToken,
        words,
    },
    text::is_glyph,
};

/// Words without meaning for the goal. Words that restrict (`not`, `only`, `except`) must never be
/// here.
const COMMON: &str = " please can could would you kindly just now the a an this that these me is are was were do does did of in on \
    at ok okay hey here there tell to see we ";
const COMMON_CHINESE: &str = "请问 请 帮我 给我 我想 想 麻烦 你能不能 能不能 你能 您能 可以 把 将 在 这个 那个 这里 这 那 当前 现在 目前 一下 \
    一个 吧 吗 呢 了 的 是 里面 里 中 上 下 有 都 我要 要";

/// Chinese words that restrict. A text that is not split into words must have none.
const RESTRICTIONS: [&str; 12] =
    ["不要", "不能", "不用", "不许", "不可", "不得", "别", "除", "只", "勿", "仅", "以外"];

/// The words that a goal understands, and an example.
pub(in crate::plan) struct GoalVocabulary {
    english: &'static str,
    chinese: &'static str,
    /// The example in English and in Chinese.
    pub(in crate::plan) example: (&'static str, &'static str),
}

const fn vocabulary(
    english: &'static str,
    chinese: &'static str,
    example: (&'static str, &'static str),
) -> GoalVocabulary {
    GoalVocabulary { english, chinese, example }
}

const SHOW: GoalVocabulary = vocabulary(
    "show peek display print cat open view read head tail look what's what inside contents content give like file lines line \
     first last top bottom beginning end through until and from code around -n",
    "显示 打开 查看 看看 看 读 展示 输出 打印 内容 什么 写 怎么写 文件 第 行 前 后 最后 开头 末尾 到 至 和 几 代码 附近 周围",
    ("show lines 10-20 of src/main.rs", "显示 src/main.rs 的第10到20行"),
);
const DEFINE: GoalVocabulary = vocabulary(
    "show display print where function fn def method func struct class enum trait type interface defined definition define \
     declared declaration implemented code",
    "显示 查看 看看 看 函数 方法 结构体 类 枚举 哪里 哪儿 哪 定义 声明 实现 代码 怎么写 打开",
    ("where is `total` defined?", "`total` 在哪里定义？"),
);
const FIND: GoalVocabulary = vocabulary(
    "find locate list show display which what where files file any all every named called name names with something scripts source \
     sources code",
    "找 找出 找到 查找 搜索 列出 哪些 有没有 所有 文件 脚本 名字 文件名 名称 名为 叫 项目 显示",
    ("find *.md", "找出所有 Python 文件"),
);
const RANK: GoalVocabulary = vocabulary(
    "find show list what what's which files file size sorted by how big large largest biggest heaviest smallest tiniest newest latest \
     recent recently most changed modified last oldest larger bigger greater more smaller less than over above under below and its \
     first lines line top k kb kib m mb mib g gb gib kilobytes megabytes gigabytes days day weeks week months month i have",
    "找 找到 找出 查找 列出 显示 哪些 哪个 文件 最大 最小 最近 最新 最旧 最老 最早 修改 改 过 大于 小于 超过 多大 大小 体积 并 它 前 几 行 天 周 月 \
     个 内 之内 打开 看看 以上 以下 是",
    ("find the largest file", "哪个文件最大？"),
);
const SEARCH: GoalVocabulary = vocabulary(
    "search searching grep look for find show list which what where who files file lines line contain contains containing mention \
     mentions use uses used using usages usage call calls callers references reference occurrences occurrence occur occurs word text \
     string code around each context surrounding with and all every how many times count number",
    "搜索 搜 查一下 查找 找出 找到 找 包含 含有 用到 使用 引用 调用 出现 哪些 哪里 哪个 谁 文件 行 次 条 个 处 显示 上下文 周围 附近 代码 并 所有 列出 \
     多少 几 一共 总共 共 统计 过 和 词 文本 字符串 项目",
    ("search for \"a b\" in src", "在 src 里搜索“a b”"),
);
const LIST: GoalVocabulary = vocabulary(
    "find list ls dir what what's any directory directories folder folders under inside files file show which content \
     contents",
    "列出 列一下 列 有什么 有哪些 哪些 什么 目录 文件夹 下面 内 东西 看看 查看 看 显示 文件",
    ("list the files in src", "列出 src 目录下的文件"),
);
const LAYOUT: GoalVocabulary = vocabulary(
    "what what's explain describe about layout structure overview organized organised tree language languages \
     used project repo repository codebase code workspace show give big how list",
    "介绍 说明 解释 项目 仓库 工程 代码库 代码 结构 概述 概览 布局 组织 概况 语言 什么 哪些 用 做 做什么 干什么 看看 查看 显示",
    ("what is in this project?", "介绍一下这个项目的结构"),
);
const TEST: GoalVocabulary = vocabulary(
    "should shall may i we run execute tests test suite all my our pass passing passed passes fails fail which any and show code first failure failing",
    "运行 执行 跑 测试 所有 全部 通过 成功 失败 哪些 并 显示 第一个失败的代码 项目 挂",
    ("run the tests", "运行测试"),
);
const COUNT_LINES: GoalVocabulary = vocabulary(
    "how many count number total lines line loc file files have has project repo repository all what what's",
    "多少 几 统计 数一数 数一下 一共 总共 共 总数 行 文件 个 项目 仓库 所有",
    ("how many lines of python are there?", "src 里有多少行"),
);
const COUNT_FILES: GoalVocabulary = vocabulary(
    "how many count number total files file have has project repo repository all what what's",
    "多少 几 统计 数一数 数一下 一共 总共 共 总数 文件 个 项目 仓库 所有",
    ("count the files in src", "src 里有几个文件"),
);
const COMPARE: GoalVocabulary = vocabulary(
    "compare difference differences diff differ between and with from vs versus what what's how file files show",
    "比较 对比 区别 不同 差异 差别 相比 和 与 跟 什么 文件 之间 哪些 看看 一下",
    ("compare a.txt and b.txt", "比较 a.txt 和 b.txt"),
);
const STATUS: GoalVocabulary = vocabulary(
    "git status what what's which working tree clean uncommitted dirty changes changed modified files file i have any show list repo repository",
    "git 状态 未提交 没提交 没有提交 干净 有没有 哪些 改动 修改 文件 我 改 看看 查看 看 显示 什么 工作区 仓库",
    ("git status", "git 状态"),
);
const BRANCHES: GoalVocabulary = vocabulary(
    "git what which branch branches am i current list show all repo repository",
    "git 分支 哪个 哪些 我 在哪个 什么 列出 所有 看看 查看 显示",
    ("what branch am I on?", "当前在哪个分支"),
);
const LOG: GoalVocabulary = vocabulary(
    "git show list what what's last latest newest most recent commit commits committed log history for by when who changed modified edited edit file",
    "git 最近 最新 最后 上 一 次 个 条 提交 历史 日志 谁 什么时候 时间 修改 改 什么 看看 查看 看 显示 列出 记录",
    ("show the last 3 commits", "最近三次提交"),
);
const COMMIT_COUNT: GoalVocabulary = vocabulary(
    "git how many number total commits commit have has history repo repository project",
    "git 多少 几 一共 总共 共 次 个 提交 项目 仓库",
    ("how many commits are there?", "一共有多少次提交"),
);
const DIFF: GoalVocabulary = vocabulary(
    "git what what's i we my our change changed changes diff difference show have uncommitted modified edit edits edited",
    "git 我 改 修改 改动 变化 变更 哪些 什么 内容 和 与 跟 上次提交 最后一次提交 相比 比较 没提交 未提交 没有提交 看看 查看 显示 看",
    ("show me the diff", "我改了什么"),
);
const SINCE: GoalVocabulary = vocabulary(
    "what what's changed changes since after show git have has been last week month yesterday today",
    "从 自从 自 以来 之后 以后 改 修改 改动 变化 变更 什么 哪些 昨天 上周 上个月 今天 git",
    ("what changed since v1.0?", "从 v1.0 以来改了什么"),
);
const BLAME: GoalVocabulary = vocabulary(
    "who changed wrote written edited modified touched last works worked work working contributed contributes authors author whose line file \
     project repo repository blame git by",
    "谁 作者 改 修改 写 编辑 过 最后 第 行 文件 项目 仓库 参与 开发 哪些 人",
    ("who changed line 3 of src/main.rs?", "src/main.rs 第3行是谁改的"),
);
const REFRAIN: GoalVocabulary = vocabulary(
    "not don't dont never delete remove rename move copy replace change append add create write modify edit touch run execute test tests files \
     file any anything directory folder",
    "不要 别 勿 删除 删掉 删 移除 重命名 移动 复制 替换 修改 改 追加 添加 新建 创建 运行 执行 跑 测试 文件 目录 任何 动",
    ("show README.md", "显示 README.md"),
);
const GREET: GoalVocabulary = vocabulary(
    "hello hi hey help what who thanks thank windlass good morning evening day",
    "你好 您好 帮助 你能做什么 你会什么 谢谢 你 谁 早上好",
    ("what is in this project?", "这个项目里都有什么"),
);

impl PlanGoal {
    /// Returns the vocabulary of this goal. Goals that change or run something have none: they
    /// check every word when they are recognised.
    pub(in crate::plan) fn vocabulary(&self) -> Option<&'static GoalVocabulary> {
        Some(match self {
            Self::Show { .. } => &SHOW,
            Self::Define { .. } => &DEFINE,
            Self::FindFiles { .. } => &FIND,
            Self::Rank(_) => &RANK,
            Self::Search { .. } => &SEARCH,
            Self::List { .. } => &LIST,
            Self::Layout | Self::About => &LAYOUT,
            Self::Test { .. } => &TEST,
            Self::CountLines(_) => &COUNT_LINES,
            Self::CountFiles(_) => &COUNT_FILES,
            Self::Compare { .. } => &COMPARE,
            Self::Status => &STATUS,
            Self::Branches => &BRANCHES,
            Self::Log(_) => &LOG,
            Self::CountCommits { .. } => &COMMIT_COUNT,
            Self::Diff { .. } => &DIFF,
            Self::ChangesSince(_) => &SINCE,
            Self::Blame { .. } | Self::Authors => &BLAME,
            Self::LeaveAlone { .. } | Self::RunNothing => &REFRAIN,
            Self::Greet => &GREET,
            Self::Run { .. }
            | Self::Create { .. }
            | Self::Replace { .. }
            | Self::SetValue { .. }
            | Self::Rename { .. }
            | Self::Delete { .. }
            | Self::Copy { .. }
            | Self::Append { .. }
            | Self::MakeDirectory { .. }
            | Self::DeleteDirectory { .. }
            | Self::Say(_)
            | Self::Unaccounted { .. } => return None,
        })
    }

    /// Returns the first word of a request that this goal does not account for.
    pub(super) fn unaccounted(&self, request: &ParsedRequest) -> Option<String> {
        let vocabulary = self.vocabulary()?;
        let (objects, numbers) = (self.objects(), RefCell::new(self.numbers(request)));
        // Each number is used once: `the first 3 and the last 3 lines` has one too many.
        let take = |number: u64| {
            let at = numbers.borrow().iter().position(|each| *each == number);
            at.map(|at| numbers.borrow_mut().swap_remove(at)).is_some()
        };
        let is_object = |text: &str| objects.iter().any(|object| object.eq_ignore_ascii_case(text));
        let is_kind = |text: &str| {
            let extension = words::extension(text.trim_start_matches('.'));
            extension.is_some_and(|extension| objects.contains(&format!("*.{extension}").as_str()))
        };
        let says = |words: &str, word: &str| words.split(' ').any(|each| each == word);
        let is_known = |at: usize, token: &RequestToken| match token {
            RequestToken::Quoted(text) => objects.contains(&text.as_str()),
            RequestToken::Name(text) => {
                is_object(text) || is_object(text.trim_end_matches('/')) || is_kind(text)
            }
            RequestToken::Number(number) => take(*number),
            RequestToken::Range(from, to) => take(*from) && (from == to || take(*to)),
            RequestToken::Option(text) => says(vocabulary.english, text),
            RequestToken::Word(word) | RequestToken::Symbol(word) => {
                let lower = word.to_lowercase();
                says(COMMON, &lower)
                    || says(vocabulary.english, &lower)
                    || is_object(word)
                    || is_kind(word)
                    || is_polite(&request.tokens, at)
            }
            RequestToken::Glyphs(text) => {
                is_covered(text, vocabulary.chinese, &objects) || is_part_of_name(text, &objects)
            }
        };
        let unknown = request.tokens.iter().enumerate().find(|(at, token)| !is_known(*at, token));
        unknown.map(|(_, token)| token.to_string())
    }

    /// Returns the objects of a goal: files, texts, places, and the words that stand for them.
    fn objects(&self) -> Vec<&str> {
        let mut objects: Vec<&str> = match self {
            Self::Show { files, .. } => files.iter().map(String::as_str).collect(),
            Self::Define { name, .. }
            | Self::ChangesSince(HistoryStart::Revision(name) | HistoryStart::Time(name)) => {
                vec![name]
            }
            Self::FindFiles { scope, name } => scope.named().chain(name.as_deref()).collect(),
            // `fn main` is one text of two words.
            Self::Search { texts, scope, want, .. } => {
                // A single count answers for only one text.
                let answered = if matches!(want, SearchOutput::Count) { 1 } else { texts.len() };
                let words = texts
                    .iter()
                    .take(answered)
                    .flat_map(|text| iter::once(text.as_str()).chain(text.split(' ')));
                scope.named().chain(words).collect()
            }
            Self::Rank(FileRanking { scope, .. }) | Self::CountLines(scope) | Self::CountFiles(scope) => {
                scope.named().collect()
            }
            Self::List { directory } => directory.as_deref().into_iter().collect(),
            Self::Test { filter, .. } => filter.as_deref().into_iter().collect(),
            Self::Compare { one, two } => vec![one, two],
            Self::Log(CommitQuery { path, author, .. }) => {
                path.iter().chain(author).map(String::as_str).collect()
            }
            Self::CountCommits { path } | Self::Diff { path } => path.as_deref().into_iter().collect(),
            Self::Blame { file, .. } => vec![file],
            Self::LeaveAlone { name } => name.as_deref().into_iter().collect(),
            _ => Vec::new(),
        };
        if objects.contains(&LOG_FILES) {
            objects.extend(["logs", "日志"]);
        }
        // A place is often followed by its kind.
        if self.place().is_some() {
            objects.extend(["directory", "folder", "目录", "文件夹"]);
        }
        // Lines of code are those of a place or a kind of files. Not all lines of a whole project
        // are code.
        let is_scoped = |scope: &SearchScope| scope.place.is_some() || scope.glob.is_some();
        if matches!(self, Self::CountLines(scope) | Self::CountFiles(scope) if is_scoped(scope)) {
            objects.extend(["code", "代码", "source"]);
        }
        objects
    }

    /// Returns the place that it searches.
    fn place(&self) -> Option<&str> {
        match self {
            Self::Search { scope, .. }
            | Self::FindFiles { scope, .. }
            | Self::Rank(FileRanking { scope, .. })
            | Self::CountLines(scope)
            | Self::CountFiles(scope) => scope.place.as_deref(),
            _ => None,
        }
    }

    /// Returns the numbers that a goal uses.
    fn numbers(&self, request: &ParsedRequest) -> Vec<u64> {
        let of_part = |part: LineSelection| match part {
            LineSelection::Whole => vec![],
            LineSelection::Lines(from, to) if from == to => vec![from],
            LineSelection::Lines(from, to) => vec![from, to],
            LineSelection::First(count) | LineSelection::Last(count) => vec![count],
        };
        match self {
            Self::Show { part, .. } => {
                // `the code around line 9` shows more than that line.
                let line = request.number().filter(|_| request.has(words::WordClass::Around));
                of_part(*part).into_iter().chain(line).collect()
            }
            Self::Rank(rank) => {
                let then = rank.then.map(of_part).unwrap_or_default();
                then.into_iter().chain(request.number().filter(|_| rank.then.is_none())).collect()
            }
            Self::Search { want: SearchOutput::Around(lines), .. } => vec![*lines],
            Self::Log(commits) => vec![commits.count],
            Self::Blame { line, .. } => line.iter().copied().collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns true if a word only expresses a wish: `I want to see`, `I'd like`.
fn is_polite(tokens: &[RequestToken], at: usize) -> bool {
    const WHO: [&str; 4] = ["i", "we", "i'd", "we'd"];
    const WISHES: [&str; 4] = ["want", "need", "would", "like"];
    let is = |at: Option<usize>, words: &[&str]| {
        let word = at.and_then(|at| tokens.get(at));
        matches!(word, Some(RequestToken::Word(word)) if words.contains(&word.to_lowercase().as_str()))
    };
    let (before, after) = (at.checked_sub(1), Some(at + 1));
    is(Some(at), &WHO) && is(after, &WISHES)
        || is(Some(at), &WISHES) && (is(before, &WHO) || is(before, &["would"]))
}

/// Returns true if a Chinese text consists only of these words, common words and objects.
pub(super) fn is_covered(text: &str, words: &str, objects: &[&str]) -> bool {
    let known: Vec<_> = words
        .split_whitespace()
        .chain(COMMON_CHINESE.split_whitespace())
        .chain(objects.iter().copied())
        .collect();
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for at in 0..text.len() {
        if reached[at] {
            let fitting = known.iter().filter(|word| text[at..].starts_with(**word));
            fitting.for_each(|word| reached[at + word.len()] = true);
        }
    }
    reached[text.len()]
}

/// Returns true if the text is the Chinese part of a name. Words before a name without a space are
/// taken as part of it.
fn is_part_of_name(text: &str, objects: &[&str]) -> bool {
    let is_name = |object: &&str| object.chars().filter(|c| is_glyph(*c)).eq(text.chars());
    !RESTRICTIONS.iter().any(|mark| text.contains(mark)) && objects.iter().any(is_name)
}
