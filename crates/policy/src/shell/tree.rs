//! Reads the commands of a script from its syntax tree.
//!
//! The shape of the tree is not trusted: `a && b > f c` is parsed as one redirection around both
//! commands that swallows the last word. Only its tokens are used, in the order of the source, and
//! commands are built from them. A node that is not on the list of literal ones makes the script
//! unclear; its commands are still read, because they may be dangerous. A text that may contain
//! commands and has no nodes for them is unread.

mod inner;

use std::{borrow::Cow, ops::Range};

use tree_sitter::{Node, TreeCursor};

use super::{
    CommandSeparator, RedirectKind, ShellDialect, ShellScript, UnclearKind, UnclearText,
    draft::{CommandDraft, is_number},
    evaluation::{QuotedCodeTracker, evaluates_words, is_misread, is_quoted_code},
    kind::{self, NodeKind},
    parser::{HERE_STRING, parse},
};

/// Maximum depth of a tree. A long chain of `&&` is one level per command.
const MAX_DEPTH: usize = 200;

pub(super) fn read(source: &str, dialect: ShellDialect) -> ShellScript {
    let source = &ended(source);
    let mut reader = ScriptReader {
        source,
        dialect,
        script: ShellScript::default(),
        draft: None,
        spare: None,
        joined: CommandSeparator::Apart,
        end: 0,
        last: TokenKind::Operator,
        is_broken: false,
        is_shell_test: false,
        word_end: 0,
        quoted_code: QuotedCodeTracker::default(),
    };
    match parse(source) {
        Some(tree) => {
            let root = tree.root_node();
            reader.is_broken = root.has_error();
            if reader.is_broken {
                reader.unclear(UnclearKind::Syntax, root.byte_range());
            }
            reader.visit(&mut root.walk(), root, TokenContext::Script, 0);
            reader.gap(source.len());
            reader.finish();
            if reader.quoted_code.may_run() {
                reader.unclear(UnclearKind::QuotedCode, 0..source.len());
                reader.script.unread = vec![source.to_string()];
            }
        }
        None => reader.unclear(UnclearKind::TooHard, 0..source.len()),
    }
    reader.script
}

/// Returns the script with a newline at its end, which is the same to a shell. The grammar reports
/// errors for some scripts without one, and its error recovery costs more time than all the rest.
fn ended(source: &str) -> Cow<'_, str> {
    // After a backslash a newline would be a continuation.
    if source.ends_with(['\n', '\\']) { source.into() } else { format!("{source}\n").into() }
}

/// Builds commands, token by token.
struct ScriptReader<'a> {
    source: &'a str,
    dialect: ShellDialect,
    script: ShellScript,
    draft: Option<CommandDraft>,
    /// An empty draft, kept for the capacity of its lists.
    spare: Option<CommandDraft>,
    /// The operator before the next command.
    joined: CommandSeparator,
    /// The end of the last token.
    end: usize,
    last: TokenKind,
    /// The grammar found errors, or tokens missing.
    is_broken: bool,
    /// In `[[ … ]]`, where the shell itself reads the operators.
    is_shell_test: bool,
    /// The end of the word that is searched for substitutions.
    word_end: usize,
    quoted_code: QuotedCodeTracker,
}

/// The kind of a token, for its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// Ends where the next word begins, even without a space between.
    Operator,
    /// Goes on if there is no space.
    Word,
}

/// The construct that the tokens of a node belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenContext {
    /// Between commands.
    Script,
    /// In a command: every token is a word.
    Command,
}

impl ScriptReader<'_> {
    /// Visits a node. The cursor is at it, and returns to it.
    fn visit(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, place: TokenContext, depth: usize) {
        if depth > MAX_DEPTH {
            return self.unclear(UnclearKind::TooDeep, node.byte_range());
        }
        if self.is_broken && node.is_missing() {
            return self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        let kind = NodeKind::from_node(&node);
        // The grammar finds whole commands between `[` and `]`, where a shell reads words.
        if place == TokenContext::Command
            && matches!(kind, NodeKind::Group | NodeKind::Command | NodeKind::Test | NodeKind::Function)
        {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        match kind {
            NodeKind::Group => self.children(at, TokenContext::Script, depth),
            NodeKind::Command => {
                self.begin(node);
                self.children(at, TokenContext::Command, depth);
            }
            NodeKind::Test => self.test(at, node, depth),
            NodeKind::Assignment => self.assignment(at, node, place, depth),
            NodeKind::Redirect => self.redirect(at, node, depth),
            NodeKind::HereDocument => self.here_document(at, node, depth),
            NodeKind::HereText => self.aside(at, node, depth),
            NodeKind::Comment => self.comment(node),
            NodeKind::Word | NodeKind::Substitution => match place {
                TokenContext::Command => self.word(at, node, depth),
                TokenContext::Script => self.aside(at, node, depth),
            },
            NodeKind::Function => self.other(at, UnclearKind::Function, place, depth),
            NodeKind::Error => self.other(at, UnclearKind::Syntax, place, depth),
            NodeKind::ControlFlow => self.other(at, UnclearKind::ControlFlow, place, depth),
            NodeKind::Token => self.operator(node, place),
        }
    }

    fn children(&mut self, at: &mut TreeCursor<'_>, place: TokenContext, depth: usize) {
        each_child(at, |at, child| self.visit(at, child, place, depth + 1));
    }

    /// Handles a token of the script itself.
    fn operator(&mut self, node: Node<'_>, place: TokenContext) {
        let kind = kind::name(&node);
        if place == TokenContext::Command {
            let is_read_by_shell = matches!(kind, "&&" | "||" | "(" | ")" | "<" | ">");
            return if self.is_shell_test && is_read_by_shell {
                self.token(node, TokenKind::Operator);
            } else {
                self.plain_word(node.byte_range());
            };
        }
        // Shells need a space after it; without one it is part of the program's name.
        if kind == "!" {
            if self.joined == CommandSeparator::Piped {
                self.unclear(UnclearKind::Syntax, node.byte_range());
            }
            return self.token(node, TokenKind::Word);
        }
        self.token(node, TokenKind::Operator);
        // After something unclear, such as a group, a command before may have ended already.
        let nothing_before = self.draft.is_none() && self.script.is_clear();
        self.finish();
        match kind {
            "|" | "|&" => {
                self.joined = CommandSeparator::Piped;
                if nothing_before || (kind == "|&" && self.dialect == ShellDialect::Posix) {
                    self.unclear(UnclearKind::Syntax, node.byte_range());
                }
            }
            "&" => self.unclear(UnclearKind::Background, node.byte_range()),
            ";;" if node.parent().is_none_or(|parent| kind::name(&parent) != "case_item") => {
                self.unclear(UnclearKind::Syntax, node.byte_range());
            }
            ";" | "&&" | "||" if nothing_before => self.unclear(UnclearKind::Syntax, node.byte_range()),
            // A separator, or part of a text that is already unclear.
            _ => {}
        }
    }

    /// Handles `[ … ]`, which is a program like others, and `[[ … ]]`, which is a language of its
    /// own.
    fn test(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let is_shell_test = !text.starts_with('[') || text.starts_with("[[");
        if is_shell_test {
            self.unclear(UnclearKind::Arithmetic, node.byte_range());
            self.quoted_code.is_evaluated = true;
        }
        self.begin(node);
        let outer = std::mem::replace(&mut self.is_shell_test, is_shell_test);
        self.children(at, TokenContext::Command, depth);
        self.is_shell_test = outer;
    }

    /// Handles a node that is not literal. Inside a test, expressions only group words.
    fn other(&mut self, at: &mut TreeCursor<'_>, what: UnclearKind, place: TokenContext, depth: usize) {
        let node = at.node();
        if place == TokenContext::Command {
            return if node.child_count() == 0 {
                self.word(at, node, depth)
            } else {
                self.children(at, place, depth)
            };
        }
        self.unclear(what, node.byte_range());
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        self.quoted_code.is_evaluated |= kind::name(&node) == "c_style_for_statement";
        if kind::name(&node) == "compound_statement" && text.starts_with("((") {
            self.arithmetic(node);
        }
        self.finish();
        self.children(at, TokenContext::Script, depth);
        self.finish();
    }

    fn word(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let is_pattern = matches!(kind::name(&node), "regex" | "extglob_pattern");
        if self.is_shell_test && is_pattern && !text.contains([' ', '\t', '\n', ';', '&', '<', '>']) {
            self.gap(node.start_byte());
            return self.aside(at, node, depth);
        }
        self.plain_word(node.byte_range());
        self.note(node);
        self.inner(at, node, depth, false);
    }

    fn plain_word(&mut self, range: Range<usize>) {
        self.gap(range.start);
        let touching = self.last == TokenKind::Word;
        (self.end, self.last) = (range.end, TokenKind::Word);
        let draft = self.open();
        match draft.words.last_mut().filter(|last| touching && last.end == range.start) {
            // The grammar split one word in two.
            Some(last) => last.end = range.end,
            None if touching => self.unclear(UnclearKind::Syntax, range),
            None => draft.words.push(range),
        }
    }

    /// Handles a word that is not part of a command, such as the list of a loop.
    fn aside(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        self.note(node);
        self.inner(at, node, depth, false);
        (self.end, self.last) = (node.end_byte(), TokenKind::Word);
    }

    fn assignment(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, place: TokenContext, depth: usize) {
        let named = self.draft.as_ref().is_some_and(|draft| !draft.words.is_empty());
        if place == TokenContext::Command && named {
            return self.word(at, node, depth);
        }
        self.token(node, TokenKind::Word);
        // A name, an operator and, unless it is empty, a value.
        let mut parts = Vec::with_capacity(3);
        each_child(at, |_, child| parts.push(child.byte_range()));
        let name = parts.first().cloned().unwrap_or(node.byte_range());
        let value = parts.get(2).cloned().unwrap_or(node.end_byte()..node.end_byte());
        let plain = self.source.get(name.clone()).is_some_and(is_identifier);
        if !plain || self.source.get(name.end..value.start) != Some("=") {
            self.unclear(UnclearKind::Array, node.byte_range());
            self.quoted_code.is_evaluated = true;
        }
        self.note(node);
        self.quoted_code.is_evaluated |= self.source.get(value.clone()).is_some_and(is_quoted_code);
        self.open().assignments.push((name, value));
        self.inner(at, node, depth, false);
    }

    /// Handles a redirection, and the words after its target: the grammar takes them for more
    /// targets.
    fn redirect(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        let before = self.source.get(..node.start_byte()).unwrap_or_default();
        let before = before.rsplit([' ', '\t', '\n', ';', '|', '&', '<', '>']).next().unwrap_or_default();
        // The grammar does not always see that a number, or `{name}`, right before an operator is
        // part of it.
        if !before.is_empty() && (is_number(before) || before.ends_with('}')) {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        let mut operator = None;
        let mut is_numbered = false;
        each_child(at, |at, child| {
            match kind::name(&child) {
                "file_descriptor" => {
                    // The grammar takes `-ofile5` before an operator for a descriptor, where a
                    // shell reads a word.
                    if !self.source.get(child.byte_range()).is_some_and(is_number) {
                        self.unclear(UnclearKind::Syntax, child.byte_range());
                    }
                    is_numbered = true;
                    // A word that ends in digits is not a descriptor.
                    self.token(child, TokenKind::Word);
                    self.last = TokenKind::Operator;
                }
                ">&-" | "<&-" => {
                    self.token(child, TokenKind::Operator);
                    let end = self.end;
                    self.open().redirects.push((RedirectKind::Descriptor, end..end));
                    // `>&-f` means something else.
                    self.last = TokenKind::Word;
                }
                kind if !child.is_named() => {
                    self.token(child, TokenKind::Operator);
                    // `2>&f` is an error: after a descriptor, only a descriptor may follow.
                    operator = Some(if is_numbered && kind == ">&" { "<&" } else { kind });
                    let text = self.source.get(child.start_byte()..).unwrap_or_default();
                    if text.starts_with(HERE_STRING) {
                        operator = Some(HERE_STRING);
                        self.end = child.start_byte() + HERE_STRING.len();
                    }
                    self.open();
                }
                // The grammar does not know `<>`: one half of it is an error.
                _ if child.is_error() => operator = operator.take().or(Some("<>")),
                _ => match operator.take() {
                    Some(operator) => self.target(at, child, operator, depth),
                    None => self.visit(at, child, TokenContext::Command, depth + 1),
                },
            }
        });
    }

    fn target(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, operator: &str, depth: usize) {
        let gap = self.source.get(self.end..node.start_byte()).unwrap_or_default();
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let posix = self.dialect == ShellDialect::Posix;
        let (kind, certain) = match operator {
            "<" => (RedirectKind::Read, true),
            ">" | ">|" => (RedirectKind::Write, true),
            ">>" => (RedirectKind::Append, true),
            ">&" => (RedirectKind::Descriptor, !posix || is_number(text)),
            "<&" => (RedirectKind::Descriptor, is_number(text)),
            HERE_STRING => (RedirectKind::Text, !posix),
            // To a shell without it, this is a background command and an empty file.
            "&>" => (RedirectKind::Write, !posix),
            "&>>" => (RedirectKind::Append, !posix),
            _ => (RedirectKind::Write, false),
        };
        if !certain || gap.replace("\\\n", "").contains('\n') {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        self.token(node, TokenKind::Word);
        self.note(node);
        self.open().redirects.push((kind, node.byte_range()));
        self.inner(at, node, depth, false);
    }

    /// Checks that a comment extends to the end of its line and begins where a word could.
    fn comment(&mut self, node: Node<'_>) {
        if !matches!(self.source.as_bytes().get(node.end_byte()), None | Some(b'\n')) {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        self.token(node, TokenKind::Word);
    }

    fn token(&mut self, node: Node<'_>, token: TokenKind) {
        self.gap(node.start_byte());
        if self.last == TokenKind::Word && token == TokenKind::Word {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        (self.end, self.last) = (node.end_byte(), token);
    }

    /// Checks the gap between the last token and the next: only white space, where a newline ends a
    /// command.
    fn gap(&mut self, next: usize) {
        let Some(gap) = self.source.get(self.end..next) else {
            return self.unclear(UnclearKind::Syntax, next..self.end);
        };
        if gap.is_empty() {
            return;
        }
        // Most gaps are one space.
        let white: Cow<'_, str> =
            if gap.contains('\\') { gap.replace("\\\n", "").into() } else { gap.into() };
        // Between two words, a continued line needs a space of its own. So it does between two
        // operators that might be one (`;&`).
        let operator =
            matches!(self.source.as_bytes().get(next), Some(b'&' | b'|' | b';' | b'<' | b'>' | b'(' | b')'));
        let stuck = white.is_empty() && (self.last == TokenKind::Word || operator);
        if stuck || !white.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
            self.unclear(UnclearKind::Syntax, self.end..next);
        }
        if white.contains('\n') {
            self.finish();
        }
        (self.end, self.last) = (next, TokenKind::Operator);
    }

    fn begin(&mut self, node: Node<'_>) {
        self.gap(node.start_byte());
        self.finish();
        self.open();
    }

    fn open(&mut self) -> &mut CommandDraft {
        let (joined, spare, first_inner) = (&mut self.joined, &mut self.spare, self.script.commands.len());
        self.draft.get_or_insert_with(|| CommandDraft {
            joined: std::mem::take(joined),
            first_inner,
            ..spare.take().unwrap_or_default()
        })
    }

    /// Finishes the command under construction, if there is one.
    fn finish(&mut self) {
        let Some(mut draft) = self.draft.take() else { return };
        let source = self.source;
        let words = draft.words.iter().map(|range| source.get(range.clone()).unwrap_or_default());
        if is_misread(words.clone()) {
            let range = draft.words.first().cloned().unwrap_or_default();
            self.unclear(UnclearKind::Syntax, range);
        }
        self.quoted_code.is_evaluated |= evaluates_words(words);
        let simple = draft.decode(self.source, self.dialect, self.script.commands.len());
        self.script.unclear.extend(simple.unclear());
        self.script.commands.push(simple);
        self.spare = Some(draft);
    }

    fn unclear(&mut self, what: UnclearKind, range: Range<usize>) {
        let text = self.source.get(range).unwrap_or_default();
        let unclear = UnclearText::new(what, text);
        if self.script.unclear.last() != Some(&unclear) {
            self.script.unclear.push(unclear);
        }
    }
}

/// Returns true if a text is a valid variable name.
fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Visits the children of a node, and returns to it.
fn each_child<'t>(at: &mut TreeCursor<'t>, mut visit: impl FnMut(&mut TreeCursor<'t>, Node<'t>)) {
    if !at.goto_first_child() {
        return;
    }
    loop {
        visit(at, at.node());
        if !at.goto_next_sibling() {
            break;
        }
    }
    at.goto_parent();
}
