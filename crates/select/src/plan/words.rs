//! The vocabulary of the planner, in both languages.

/// A class of words with the same role in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordClass {
    Show,
    List,
    Find,
    Search,
    Count,
    Compare,
    Run,
    Test,
    Outcome,
    Create,
    Copy,
    Append,
    Replace,
    Rename,
    Delete,
    Think,
    Explain,
    Why,
    Code,
    Greet,
    Not,
    Act,
    Undo,
    About,
    When,
    Size,
    Item,
    Named,
    Branch,
    Git,
    Status,
    Commit,
    Change,
    Mine,
    Since,
    Who,
    Project,
    Layout,
    File,
    Directory,
    Line,
    Function,
    Defined,
    Largest,
    Smallest,
    Newest,
    Oldest,
    Larger,
    Smaller,
    First,
    Last,
    Around,
    Failure,
}

/// The English words of each class (`*`: any ending, `_`: a space) and its Chinese words.
#[rustfmt::skip]
const WORDS: &[(WordClass, &str, &str)] = &[
    (WordClass::Show, "show peek see display print cat open view read head tail look_at what's_in what_is_in inside contents content_of give_me look_like looks_like",
        "显示 打开 查看 看看 看一下 看 读 内容 写了 怎么写 展示 输出 打印 是什么"),
    (WordClass::List, "list ls dir what's_in what_is_in everything", "列出 列一下 有什么 有哪些 都有 罗列"),
    (WordClass::Find, "find locate which where what_files are_there is_there any are_named named called", "找 查找 哪些 哪个 有没有 在哪 搜"),
    (WordClass::Search, "search* grep look_for occurrences mention* contain* use uses used using usage* call calls caller* reference*", "搜索 搜 查一下 找 包含 含有 用到 使用了 引用 调用 出现 里有"),
    (WordClass::Count, "how_many count number_of how_much total_number", "多少 几个 统计 数一数 数一下 有几 共几 总数 计数"),
    (WordClass::Compare, "compare difference* differ* diff vs versus", "比较 对比 区别 不同 差异 差别 相比"),
    (WordClass::Run, "run execute launch exec build compile start install deploy", "运行 执行 跑 编译 构建 启动 安装 部署"),
    (WordClass::Test, "test tests testing", "测试"),
    (WordClass::Outcome, "pass passing passed passes fail failing failed fails failure* green red ok broken", "通过 失败 成功 挂了 报错"),
    (WordClass::Create, "create make mkdir new touch write add", "新建 创建 建立 建一个 写入 生成文件"),
    (WordClass::Copy, "copy cp duplicate", "复制 拷贝 副本"),
    (WordClass::Append, "append at_the_end to_the_end", "追加 加到 末尾加 末尾添加 最后加 结尾加"),
    (WordClass::Replace, "replace change substitute set", "替换 改成 改为 换成 修改为 换为 设为 设成 设置为"),
    (WordClass::Rename, "rename move mv", "重命名 改名 移动 移到 挪到"),
    (WordClass::Delete, "delete remove rm erase", "删除 删掉 移除 删了 删"),
    (WordClass::Think, "update append refactor* implement* fix* debug* optimi* improve* rewrite translate* summari* review document develop solve design port upgrade migrate convert clean_up advise recommend",
        "重构 实现 修复 修好 修正 修一下 优化 改进 翻译 总结 评审 设计 开发 调试 迁移 升级 写一个 写个 编写 写一段"),
    (WordClass::Explain, "explain describe tell_me_about", "解释 说明一下 讲讲"),
    (WordClass::Why, "why how_come how_do_i how_to how_does how_can", "为什么 为何 怎么会 怎样 如何 怎么样 怎么办"),
    (WordClass::Code, "parser program code function class script module app application feature test tests unit_test loop algorithm", "程序 代码 函数 脚本 功能 模块"),
    (WordClass::Greet, "hello hi hey help what_can_you_do who_are_you thanks", "你好 您好 帮助 你能做什么 你会什么 谢谢"),
    (WordClass::Not, "not don't dont never", "不要 别 勿"),
    (WordClass::Undo, "undo revert roll_back rollback restore", "撤销 撤回 回滚 还原 恢复"),
    (WordClass::Act, "commit push pull merge checkout stash rebase reset discard stage", "推送 拉取 合并 提交所有 提交代码 提交一下 提交修改"),
    (WordClass::About, "about what_is_this what_does_this", "做什么 干什么 干嘛 用来"),
    (WordClass::When, "when", "什么时候 何时 哪天 修改时间"),
    (WordClass::Size, "how_big how_large size", "多大 大小 体积"),
    (WordClass::Item, "struct class enum trait type interface", "结构体 类 枚举"),
    (WordClass::Named, "name names named called", "名字 名称 文件名 名为 名叫 叫"),
    (WordClass::Branch, "branch branches", "分支"),
    (WordClass::Git, "git", "git"),
    (WordClass::Status, "status uncommitted untracked unstaged staged dirty clean working_tree", "状态 未提交 没提交 没有提交 未跟踪 暂存 干净"),
    (WordClass::Commit, "commit commits committed git_log history", "提交 历史"),
    (WordClass::Change, "changed changes change diff modified difference edit edits edited", "改了 修改 变化 变更 改动 更改 改过"),
    (WordClass::Mine, "i my we our me", "我"),
    (WordClass::Since, "since after", "以来 之后 以后 自从"),
    (WordClass::Who, "who blame whose", "谁 作者"),
    (WordClass::Project, "project repo repository codebase code_base workspace", "项目 仓库 工程 代码库"),
    (WordClass::Layout, "layout structure overview organi* architecture tree language languages", "语言 结构 介绍 概述 概览 布局 组织 架构 概况"),
    (WordClass::File, "file files", "文件"),
    (WordClass::Directory, "directory directories folder folders dir", "目录 文件夹"),
    (WordClass::Line, "line lines loc", "行"),
    (WordClass::Function, "function functions fn def method methods func", "函数 方法"),
    (WordClass::Defined, "defined definition define declared declaration implemented where_is", "定义 声明 实现的 在哪"),
    (WordClass::Largest, "largest biggest heaviest", "最大"),
    (WordClass::Smallest, "smallest tiniest", "最小"),
    (WordClass::Newest, "newest latest recent recently most_recent last_modified last_changed changed_in_the_last modified_in_the_last", "最近 最新 刚刚 天内 周内 月内 天之内"),
    (WordClass::Oldest, "oldest", "最旧 最老 最早"),
    (WordClass::Larger, "larger_than bigger_than greater_than more_than over above exceeding at_least", "大于 超过 以上 大过"),
    (WordClass::Smaller, "smaller_than less_than under below at_most", "小于 不到 以下 不超过"),
    (WordClass::First, "first head top beginning", "前几 前面 开头 头几"),
    (WordClass::Last, "last tail bottom end ending final", "最后 末尾 结尾 倒数"),
    (WordClass::Around, "around context surrounding code_of code_around", "上下文 周围 附近 前后"),
    (WordClass::Failure, "first_failure failure failing_test failed_test code_of_the", "失败"),
];

impl WordClass {
    /// Returns the position of the first word of this class. The text is in lower case, with one
    /// space around English words.
    pub(super) fn place(self, text: &str) -> Option<usize> {
        let (_, english, chinese) = WORDS.iter().find(|(word, ..)| *word == self)?;
        let english = english.split(' ').filter_map(|word| {
            let (stem, end) = word.strip_suffix('*').map_or((word, " "), |stem| (stem, ""));
            text.find(&format!(" {}{end}", stem.replace('_', " ")))
        });
        let chinese = chinese.split(' ').filter_map(|word| text.find(word));
        english.chain(chinese).min()
    }
}

/// Programming languages and file types: name, words for them, and extension.
#[rustfmt::skip]
const KINDS: &[(&str, &[&str], &str)] = &[
    ("Rust", &["rust", "rs"], "rs"),
    ("Python", &["python", "py"], "py"),
    ("JavaScript", &["javascript", "js"], "js"),
    ("TypeScript", &["typescript", "ts"], "ts"),
    ("Go", &["golang", "go"], "go"),
    ("Java", &["java"], "java"),
    ("C", &["c"], "c"),
    ("C++", &["c++", "cpp"], "cpp"),
    ("Ruby", &["ruby", "rb"], "rb"),
    ("Shell", &["shell", "sh", "bash"], "sh"),
    ("Markdown", &["markdown", "md"], "md"),
    ("TOML", &["toml"], "toml"),
    ("JSON", &["json"], "json"),
    ("YAML", &["yaml", "yml"], "y*ml"),
    ("CSV", &["csv"], "csv"),
    ("HTML", &["html"], "html"),
    ("CSS", &["css"], "css"),
    ("Text", &["txt", "text"], "txt"),
    ("Log", &["log"], "log"),
    ("SQL", &["sql"], "sql"),
];

/// Returns the extension for a word such as `python` or `md`.
pub(super) fn extension(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    KINDS.iter().find(|(_, words, _)| words.contains(&word.as_str())).map(|(.., extension)| *extension)
}

/// Returns the language of files with an extension.
pub(super) fn language(extension: &str) -> Option<&'static str> {
    KINDS
        .iter()
        .find(|(_, words, own)| *own == extension || words.contains(&extension))
        .map(|(name, ..)| *name)
}
