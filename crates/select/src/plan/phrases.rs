//! All answers of the planner, in both languages.

/// The language of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerLanguage {
    English,
    Chinese,
}

impl AnswerLanguage {
    /// Detects the language of a text. Japanese and Korean are answered in English.
    pub(super) fn detect(text: &str) -> Self {
        let has = |from: char, to: char| text.chars().any(|c| (from..=to).contains(&c));
        let kana_or_hangul = has('\u{3040}', '\u{30ff}') || has('\u{ac00}', '\u{d7a3}');
        if has('\u{4e00}', '\u{9fff}') && !kana_or_hangul { Self::Chinese } else { Self::English }
    }

    /// Returns a phrase with its placeholders filled in.
    pub(super) fn say(self, phrase: AnswerPhrase, blanks: &[&str]) -> String {
        let (english, chinese) = phrase.texts();
        let mut text = match self {
            Self::English => english,
            Self::Chinese => chinese,
        };
        // Placeholders are filled from left to right in one pass, so that braces in the name of a
        // file are kept.
        let mut filled = String::new();
        while let Some((before, rest)) = text.split_once('{') {
            let Some((number, after)) = rest.split_once('}') else { break };
            let blank = number.parse().ok().and_then(|at: usize| blanks.get(at)).copied().unwrap_or_default();
            filled.push_str(before);
            filled.push_str(blank);
            text = after;
            if let Some((noun, more)) = singular(after).filter(|_| blank == "1" || blank.ends_with(" 1")) {
                filled.push_str(noun);
                text = more;
            }
        }
        filled + text
    }

    /// Joins names.
    pub(super) fn list(self, names: &[&str]) -> String {
        names.join(match self {
            Self::English => ", ",
            Self::Chinese => "、",
        })
    }
}

/// Returns the singular of the noun in ` lines in …`, and the text after it.
fn singular(text: &str) -> Option<(&str, &str)> {
    let nouns = [" lines", " files", " functions", " commits", " items", " tests"];
    let noun = nouns.into_iter().find(|noun| text.starts_with(noun))?;
    Some((&noun[..noun.len() - 1], &text[noun.len()..]))
}

macro_rules! phrases {
    ($($name:ident: $english:literal, $chinese:literal;)*) => {
        /// An answer. `{0}` and `{1}` are placeholders.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum AnswerPhrase { $($name),* }

        impl AnswerPhrase {
            fn texts(self) -> (&'static str, &'static str) {
                match self { $(Self::$name => ($english, $chinese)),* }
            }
        }
    };
}

phrases! {
    Abilities:
        "I can show files or parts of them, find files, search text, count, describe a project, compare files, answer questions about git, run a command you spell out, run the tests, and create, replace text in, rename and delete files. Example: windlass exec \"find the TODOs in src\"",
        "我可以：显示文件或其中一部分、查找文件、搜索文本、计数、介绍项目结构、比较文件、回答 git 相关问题、运行你写明的命令、运行测试，以及新建、替换文本、重命名和删除文件。例如：windlass exec \"在 src 里找 TODO\"";
    Hello: "This is windlass, without a model: I follow rules.", "我是 windlass，没有连接模型，只按规则工作。";
    Unclear:
        "I work by rules, without a model, and do not understand this. What shall I do?",
        "我没有连接模型，只按规则工作，没有理解这个请求。要我做什么？";
    NeedsModel:
        "I can't do that without a model: it takes judgement, and I only follow rules. Choose a model with `--provider` and `--model`, or set OPENAI_API_KEY.",
        "没有模型我做不了这件事：这需要判断，而我只按规则工作。请用 `--provider` 和 `--model` 选择模型，或设置 OPENAI_API_KEY。";
    Unaccounted:
        "I work by rules and do not know what `{0}` asks for here, so I did nothing. What I can do is like this: {1}",
        "我只按规则工作，不明白这里的“{0}”要什么，所以什么都没有做。我能做的类似于：{1}";
    PartLeft:
        "I did not do the rest of it: {0}",
        "其余部分没有做：{0}";
    UndoIsACommand:
        "I take nothing back myself: `windlass undo` takes back the last changes, and `windlass undo --help` says how to choose. For commits, write the git command you mean in quotes, behind `run`.",
        "我自己不撤销任何东西：`windlass undo` 撤销最近的改动，`windlass undo --help` 说明如何选择。要撤销提交，请在“运行”之后把您要的 git 命令写在引号里。";
    NoValue:
        "I found no line that gives `{0}` a value; I changed nothing. To replace a text, put both in quotes: replace \"a\" with \"b\" in FILE.",
        "没有找到给 `{0}` 赋值的行，我什么都没有动。要替换文本，请把两者都放在引号里：把 FILE 里的“a”替换为“b”。";
    SeveralValues:
        "`{0}` gets a value in several places; I changed nothing. Name the file, or put the texts in quotes:",
        "`{0}` 在多处被赋值，我什么都没有动。请写明文件，或把文本放在引号里：";
    OtherValue:
        "The value of `{0}` is no plain value of the same kind as `{1}`; I changed nothing:",
        "`{0}` 的值不是和 `{1}` 同类的简单值，我什么都没有动：";
    ValueSet: "Set `{0}` to `{1}`.", "已把 `{0}` 设为 `{1}`。";
    OrderSet: "change {0} to {1} in FILE", "把 FILE 里的 {0} 改成 {1}";
    NotSure:
        "I found no `{0}`{1}, and am not sure that this is what to look for. Put the text in quotes: search for \"{0}\"",
        "没有找到 `{0}`{1}，也不确定要找的是不是它。请把文本放在引号里：搜索“{0}”";
    TooLong:
        "This is too long for me: without a model I read up to {0} bytes. What shall I do?",
        "这太长了：没有模型时我最多读 {0} 字节。要我做什么？";
    WhichFile: "I did nothing. Which file do you mean? Name it with its path.", "我什么都没做。是哪个文件？请写出它的路径。";
    WhichOne: "Several were listed; which one? Say: the second one.", "列出了多个，是哪一个？请说：第二个。";
    NothingBefore:
        "Which file do you mean? The last answer has none that this could be. Name it with its path.",
        "是哪个文件？上一个回答里没有可以指的文件。请写出它的路径。";
    NotListed: "The last list shows no such entry.", "上一个列表里没有这一项。";
    WhichCommand: "I ran nothing. Which command? Write it in quotes: run \"make check\".", "我什么都没运行。是哪条命令？请写在引号里：运行“make check”。";
    WhichText: "Which text do you mean? Put it in quotes, and name the file.", "是哪段文本？请放在引号里，并写明文件。";
    NewName: "What is the new name? Say: rename A to B.", "新名字是什么？请说：把 A 重命名为 B。";
    ChangesNothing:
        "You said that nothing may be changed, so I left {0} alone.",
        "你说了不要修改，所以我没有动 {0}。";
    NotRun:
        "You said that nothing may be changed, so I did not run {0}.",
        "你说了不要修改，所以我没有运行 {0}。";
    RunsNothing:
        "You said that nothing may be run, and this takes a command, so I did not do it.",
        "你说了不要运行任何命令，而这需要运行命令，所以我没有做。";
    Contradiction:
        "You said that nothing may be run, and also to change {0}: which is it? I did nothing.",
        "你说了不要运行任何命令，又要改动 {0}：到底要哪一个？我什么都没有做。";
    NothingRun: "I ran nothing: you said what not to run.", "我什么都没有运行：你说了不要运行什么。";
    TheTests: "the tests", "测试";
    Question:
        "I took this for a question, not an order, and did nothing. If you want it done, say: {0}",
        "我把这当作提问而不是指令，所以什么也没做。如果要我做，请说：{0}";
    OrderDelete: "delete {0}", "删除 {0}";
    OrderRename: "rename {0} to {1}", "把 {0} 重命名为 {1}";
    OrderReplace: "replace \"{0}\" with \"{1}\" in {2}", "把 {2} 里的“{0}”替换为“{1}”";
    OrderCreate: "create {0}", "新建 {0}";
    OrderCopy: "copy {0} to {1}", "把 {0} 复制为 {1}";
    OrderAppend: "append \"{0}\" to {1}", "在 {1} 末尾追加“{0}”";
    OrderMakeDirectory: "make the directory {0}", "新建目录 {0}";
    OrderDeleteDirectory: "delete the directory {0}", "删除目录 {0}";
    OrderRun: "run {0}", "运行 {0}";
    LeftAlone: "I changed nothing: you said what to leave alone.", "我什么都没有动：你说了不要做什么。";
    NoFile: "There is no file `{0}` here.", "这里没有文件 `{0}`。";
    CopyName: "What is the copy to be called? Say: copy A to B.", "副本叫什么名字？请说：把 A 复制为 B。";
    NoDirectory: "There is no directory `{0}` here.", "这里没有目录 `{0}`。";
    TooManyFiles:
        "{0} has more than {1} files; I left it alone.",
        "{0} 里的文件超过 {1} 个，我没有动它。";
    TooMuchToList:
        "There is too much here for me to see all that is in {0}; I left it alone.",
        "这里内容太多，我看不全 {0} 里有什么，所以没有动它。";
    LeftOut:
        "{0} has what ignore files leave out ({1}); I left it alone.",
        "{0} 里有被忽略规则排除的内容（{1}），我没有动它。";
    OtherDirectory:
        "I delete only directories below this one, and none that ignore files leave out; I left {0} alone.",
        "我只删除这里下面、没有被忽略的目录，所以没有动 {0}。";
    NoPlace: "There is no file or directory `{0}` here.", "这里没有文件或目录 `{0}`。";
    DidYouMean: "Did you mean {0}?", "你是指 {0} 吗？";
    WithPath: "Say it with its path; I changed nothing.", "请写出它的路径；我什么都没有动。";
    SeveralFiles: "`{0}` could be any of these; which one?", "`{0}` 可能是下面这些，是哪一个？";
    Exists:
        "`{0}` exists already; I left it alone. Without a model I make new files and replace quoted text in those that are there.",
        "`{0}` 已经存在，我没有动它。没有模型时我只能新建文件，或替换文件中用引号写明的文本。";
    Failed: "It did not work: {0}", "没有成功：{0}";
    ReadOnly:
        "Nothing may be written in this sandbox; `-s workspace-write` lets commands and tools write here.",
        "这个沙箱不允许写入；用 `-s workspace-write` 可以允许命令和工具在这里写。";
    TooMany: "I stopped after {0} calls without an end in sight.", "调用了 {0} 次仍没有结果，我停下了。";
    More: "… and {0} more lines", "……还有 {0} 行";
    FirstOnly: "(only the first {0} are shown; there are more)", "（只显示前 {0} 个，还有更多）";
    OthersAlike: "(other files have the same size)", "（还有其他文件大小相同）";
    AtLeast: "at least {0}", "至少 {0}";
    Cut: "(not everything was looked at: there is too much)", "（内容太多，没有全部查看）";
    WholeFile: "{0}:", "{0}：";
    FileLine: "{0}, line {1}:", "{0}，第 {1} 行：";
    FileLines: "{0}, lines {1}:", "{0}，第 {1} 行：";
    TooShort: "{0} has no line {1}.", "{0} 没有第 {1} 行。";
    Empty: "{0} is empty.", "{0} 是空的。";
    FilesFound: "{0} files:", "{0} 个文件：";
    NoFilesFound: "No file fits.", "没有符合的文件。";
    Ranked: "{0}:", "{0}：";
    Largest: "The largest", "最大的文件";
    Smallest: "The smallest", "最小的文件";
    Newest: "Changed last", "最近修改的文件";
    Oldest: "Changed longest ago", "最早修改的文件";
    Places: "{0} lines in {1} files:", "{1} 个文件中的 {0} 行：";
    NotFound: "`{0}` is nowhere to be found{1}.", "没有找到 `{0}`{1}。";
    AsText:
        "`{0}` as a word of its own; definitions, imports and comments are among these:",
        "`{0}` 作为单独的词出现的地方，其中包括定义、导入和注释：";
    Within: " in {0}", "（在 {0} 中）";
    InFiles: "`{0}` is in {1} files:", "`{0}` 出现在 {1} 个文件中：";
    Defined: "`{0}` is defined here:", "`{0}` 定义在：";
    NotDefined:
        "I see no file `{0}` here and no definition of that name. To see where it is written: search for \"{0}\"",
        "没有看到文件 `{0}`，也没有认出这个名字的定义。要看它写在哪里：搜索“{0}”";
    Entries: "{0}: {1} items", "{0}：{1} 项";
    CountLines: "{0}: {1} lines", "{0}：{1} 行";
    CountAllLines: "{0} lines in {1} files", "{1} 个文件，共 {0} 行";
    CountFiles: "{0} files{1}", "{0} 个文件{1}";
    IgnoredLeftOut:
        "(ignored files were not looked at)",
        "（没有查看被忽略的文件）";
    AllIgnored:
        "There are no files in {0} but those that ignore files such as .gitignore leave out, and I do not look at those. Name one of them, or spell out a command: run \"grep -rn TEXT {0}\"",
        "{0} 中只有被 .gitignore 等忽略规则排除的文件，我不查看它们。请写出其中一个文件名，或者写明命令，例如：运行 \"grep -rn TEXT {0}\"";
    CaseIgnored: "(capital and small letters count as the same)", "（不区分大小写）";
    LongLinesCut: "(lines are shown up to 500 bytes)", "（每行最多显示 500 字节）";
    SameFile: "Both names stand for {0} here; give the path of the other file.", "这两个名字在这里都指 {0}；请写出另一个文件的路径。";
    PathUnchanged: "Nothing has changed in {0} since the last commit.", "{0} 自上次提交以来没有改动。";
    NotLookedInto: "(not looked into: {0})", "（没有查看：{0}）";
    CountHits: "`{0}` is on {1} lines in {2} files", "`{0}` 出现在 {2} 个文件的 {1} 行中";
    Project: "{0} files, {1} lines.", "{0} 个文件，共 {1} 行。";
    Languages: "Languages:", "语言：";
    LanguageRow: "{0}: {1} files, {2} lines", "{0}：{1} 个文件，{2} 行";
    OtherFiles: "Other", "其他";
    Directories: "Directories:", "目录：";
    DirectoryRow: "{0}/: {1} files", "{0}/：{1} 个文件";
    EntryPoints: "Entry points: {0}", "入口：{0}";
    Manifests: "Project files: {0}", "项目文件：{0}";
    Tests: "Tests: {0}", "测试：{0}";
    ExitCode: "The command ended with exit code {0}.", "命令以退出码 {0} 结束。";
    Silent: "The command printed nothing.", "命令没有输出。";
    FailingCode: "The code of the first failure, {0}:", "第一个失败处的代码，{0}：";
    Same: "{0} and {1} are the same.", "{0} 和 {1} 相同。";
    Differ: "{0} and {1} differ:", "{0} 和 {1} 不同：";
    Clean: "Nothing has changed since the last commit.", "自上次提交以来没有改动。";
    Status: "Changed since the last commit (branch {0}):", "自上次提交以来的改动（分支 {0}）：";
    Commits: "{0} commits:", "{0} 个提交：";
    CommitCount: "{0} commits", "{0} 个提交";
    Branches: "Branches; the one with `*` is checked out:", "分支，带 `*` 的是当前分支：";
    NoCommitsOf: "There is no commit of {0}.", "没有 {0} 的提交。";
    NoCommits: "There is no such commit.", "没有这样的提交。";
    Since: "Changed since {0}:", "自 {0} 以来的改动：";
    CommitsOnly: "(only commits were looked at; `git status` shows what is not committed)", "（只查看了提交；未提交的改动请看 git 状态）";
    NoCommitsSince: "There are no commits since {0}.", "自 {0} 以来没有提交。";
    NoChanges: "Nothing has changed since {0}.", "自 {0} 以来没有改动。";
    Blame: "{0}, line {1}, was last changed by {2}:", "{0} 第 {1} 行最后由 {2} 修改：";
    Authors: "Who changed {0}, by number of commits:", "修改过 {0} 的人，按提交数：";
    NotCommitted: "{0}, line {1}, is not committed yet.", "{0} 第 {1} 行还没有提交。";
    Created: "Created {0}.", "已新建 {0}。";
    Replaced: "Replaced `{0}` with `{1}` in {2}.", "已把 {2} 中的 `{0}` 替换为 `{1}`。";
    NotMade:
        "The command ended well, but {0} is not there: the sandbox does not let commands make it.",
        "命令成功结束，但 {0} 并不存在：沙箱不允许命令创建它。";
    Passing:
        "In this sandbox commands have a /tmp of their own, which is gone at the end, so I did not make {0}. Name a place in this directory.",
        "在这个沙箱里命令有自己的 /tmp，结束后就消失，所以我没有创建 {0}。请写一个在当前目录里的位置。";
    Copied: "Copied {0} to {1}.", "已把 {0} 复制为 {1}。";
    Appended: "Added `{0}` at the end of {1}.", "已在 {1} 末尾追加 `{0}`。";
    MadeDirectory: "Made the directory {0}.", "已新建目录 {0}。";
    DeletedDirectory:
        "Deleted the directory {0} with {1} files; `windlass undo --turn` brings it back.",
        "已删除目录 {0} 和其中 {1} 个文件；`windlass undo --turn` 可以恢复。";
    KeptDirectory:
        "Deleted {0} files in {1}, which `windlass undo` brings back; the directory itself could not be deleted: {2}",
        "已删除 {1} 里的 {0} 个文件，`windlass undo` 可以恢复；目录本身没能删除：{2}";
    Renamed: "Renamed {0} to {1}.", "已把 {0} 重命名为 {1}。";
    Deleted: "Deleted {0}; `windlass undo` brings it back.", "已删除 {0}；`windlass undo` 可以恢复。";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_filled_once() {
        assert_eq!(AnswerLanguage::English.say(AnswerPhrase::Renamed, &["{1}", "b"]), "Renamed {1} to b.");
        assert_eq!(AnswerLanguage::English.say(AnswerPhrase::Places, &["1", "2"]), "1 line in 2 files:");
        assert_eq!(
            AnswerLanguage::English.say(AnswerPhrase::CommitCount, &["at least 1"]),
            "at least 1 commit"
        );
        assert_eq!(AnswerLanguage::Chinese.say(AnswerPhrase::Empty, &["甲"]), "甲 是空的。");
    }

    #[test]
    fn japanese_is_not_chinese() {
        assert_eq!(AnswerLanguage::detect("显示 a"), AnswerLanguage::Chinese);
        assert_eq!(AnswerLanguage::detect("元気ですか"), AnswerLanguage::English);
    }
}
