//! From a script to its commands, through the grammar's tree.
//!
//! Shapes of the tree are not trusted: `a && b > f c` comes as one redirection around both commands that swallows the
//! last word. Only its tokens are used, in the order of the source, and commands are put together from them. A node that
//! is not on the list of literal ones makes the script unclear; its commands are still looked at, for what they might do.

use std::{borrow::Cow, ops::Range};

use tree_sitter::{Node, TreeCursor};

use super::{
    Dialect, Joined, RedirectKind, Script, Unclear, What,
    draft::{Draft, is_number},
    kind::{self, Kind},
    parser::parse,
};

/// How deep a tree is followed. A long chain of `&&` is one level per command.
const MAX_DEPTH: usize = 200;

pub(super) fn read(source: &str, dialect: Dialect) -> Script {
    let source = &ended(source);
    let mut reader = Reader {
        source,
        dialect,
        script: Script::default(),
        draft: None,
        spare: None,
        joined: Joined::Apart,
        end: 0,
        last: Token::Operator,
        is_broken: false,
    };
    match parse(source) {
        Some(tree) => {
            let root = tree.root_node();
            reader.is_broken = root.has_error();
            if reader.is_broken {
                reader.unclear(What::Syntax, root.byte_range());
            }
            reader.visit(&mut root.walk(), root, Place::Script, 0);
            reader.gap(source.len());
            reader.finish();
        }
        None => reader.unclear(What::TooHard, 0..source.len()),
    }
    reader.script
}

/// The script with its last line ended, which is the same to a shell. The grammar takes some scripts that just stop for
/// broken ones, and mending them costs it more time than all the rest.
fn ended(source: &str) -> Cow<'_, str> {
    // After a backslash a new line would be something else.
    if source.ends_with(['\n', '\\']) { source.into() } else { format!("{source}\n").into() }
}

/// Puts commands together, token by token.
struct Reader<'a> {
    source: &'a str,
    dialect: Dialect,
    script: Script,
    draft: Option<Draft>,
    /// An empty one, for the room in its lists.
    spare: Option<Draft>,
    /// How the next command follows.
    joined: Joined,
    /// Where the last token ended.
    end: usize,
    last: Token,
    /// Whether the grammar found errors, or tokens missing.
    is_broken: bool,
}

/// What a token is to its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// Ends where the next word begins, even without a space between.
    Operator,
    /// Goes on if there is no space.
    Word,
}

/// What the tokens of a node are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between commands.
    Script,
    /// In a command: every token is a word.
    Command,
}

impl Reader<'_> {
    /// Looks at a node. The cursor is at it, and comes back to it.
    fn visit(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, place: Place, depth: usize) {
        if depth > MAX_DEPTH {
            return self.unclear(What::TooDeep, node.byte_range());
        }
        if self.is_broken && node.is_missing() {
            return self.unclear(What::Syntax, node.byte_range());
        }
        let kind = Kind::of(&node);
        // The grammar finds whole commands between `[` and `]`, where a shell sees words.
        if place == Place::Command
            && matches!(kind, Kind::Group | Kind::Command | Kind::Test | Kind::Function)
        {
            self.unclear(What::Syntax, node.byte_range());
        }
        match kind {
            Kind::Group => self.children(at, Place::Script, depth),
            Kind::Command => {
                self.begin(node);
                self.children(at, Place::Command, depth);
            }
            Kind::Test => self.test(at, node, depth),
            Kind::Assignment => self.assignment(at, node, place, depth),
            Kind::Redirect => self.redirect(at, node, depth),
            Kind::HereDocument => self.here_document(at, node, depth),
            Kind::HereText => self.aside(at, node, depth),
            Kind::Comment => self.comment(node),
            Kind::Word | Kind::Substitution => match place {
                Place::Command => self.word(at, node, depth),
                Place::Script => self.aside(at, node, depth),
            },
            Kind::Function => self.other(at, What::Function, place, depth),
            Kind::Error => self.other(at, What::Syntax, place, depth),
            Kind::Other => self.other(at, What::ControlFlow, place, depth),
            Kind::Token => self.operator(node, place),
        }
    }

    fn children(&mut self, at: &mut TreeCursor<'_>, place: Place, depth: usize) {
        each_child(at, |at, child| self.visit(at, child, place, depth + 1));
    }

    /// A token of the script itself.
    fn operator(&mut self, node: Node<'_>, place: Place) {
        if place == Place::Command {
            return self.plain_word(node.byte_range());
        }
        let kind = kind::name(&node);
        // Shells want a space after it; without one it is part of the program's name.
        if kind == "!" {
            if self.joined == Joined::Piped {
                self.unclear(What::Syntax, node.byte_range());
            }
            return self.token(node, Token::Word);
        }
        self.token(node, Token::Operator);
        // After something unclear, such as a group, a command before may have ended already.
        let nothing_before = self.draft.is_none() && self.script.is_clear();
        self.finish();
        match kind {
            "|" | "|&" => {
                self.joined = Joined::Piped;
                if nothing_before || (kind == "|&" && self.dialect == Dialect::Posix) {
                    self.unclear(What::Syntax, node.byte_range());
                }
            }
            "&" => self.unclear(What::Background, node.byte_range()),
            ";;" => self.unclear(What::Syntax, node.byte_range()),
            ";" | "&&" | "||" if nothing_before => self.unclear(What::Syntax, node.byte_range()),
            // Nothing to note: it separates, or is part of what was already found unclear.
            _ => {}
        }
    }

    /// `[ … ]` is a program like others, `[[ … ]]` a language of its own.
    fn test(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        if !text.starts_with('[') || text.starts_with("[[") {
            self.unclear(What::Arithmetic, node.byte_range());
        }
        self.begin(node);
        self.children(at, Place::Command, depth);
    }

    /// Whatever is not literal. Inside a test, expressions only group words.
    fn other(&mut self, at: &mut TreeCursor<'_>, what: What, place: Place, depth: usize) {
        let node = at.node();
        if place == Place::Command {
            return if node.child_count() == 0 {
                self.word(at, node, depth)
            } else {
                self.children(at, place, depth)
            };
        }
        self.unclear(what, node.byte_range());
        self.finish();
        self.children(at, Place::Script, depth);
        self.finish();
    }

    fn word(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        self.plain_word(node.byte_range());
        self.inner(at, node, depth);
    }

    fn plain_word(&mut self, range: Range<usize>) {
        self.gap(range.start);
        let touching = self.last == Token::Word;
        (self.end, self.last) = (range.end, Token::Word);
        let draft = self.open();
        match draft.words.last_mut().filter(|last| touching && last.end == range.start) {
            // The grammar cut one word in two.
            Some(last) => last.end = range.end,
            None if touching => self.unclear(What::Syntax, range),
            None => draft.words.push(range),
        }
    }

    /// A word that is no part of a command, such as what a loop runs over.
    fn aside(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        self.inner(at, node, depth);
        (self.end, self.last) = (node.end_byte(), Token::Word);
    }

    /// Commands in the substitutions of a word or a text.
    fn inner(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        // Most words have none, and need no walk: every form of them has one of these.
        let text = self.source.as_bytes().get(node.byte_range()).unwrap_or_default();
        if !text.iter().any(|byte| matches!(byte, b'`' | b'(')) {
            return;
        }
        if depth > MAX_DEPTH {
            return self.unclear(What::TooDeep, node.byte_range());
        }
        if Kind::of(&node) == Kind::Substitution {
            self.unclear(What::Substitution, node.byte_range());
            let outer = (self.draft.take(), self.joined, self.end, self.last);
            (self.joined, self.end, self.last) = (Joined::Apart, node.start_byte(), Token::Operator);
            self.children(at, Place::Script, depth);
            self.finish();
            (self.draft, self.joined, self.end, self.last) = outer;
        } else {
            each_child(at, |at, child| self.inner(at, child, depth + 1));
        }
    }

    fn assignment(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, place: Place, depth: usize) {
        let named = self.draft.as_ref().is_some_and(|draft| !draft.words.is_empty());
        if place == Place::Command && named {
            return self.word(at, node, depth);
        }
        self.token(node, Token::Word);
        // A name, an operator and, unless it is empty, a value.
        let mut parts = Vec::with_capacity(3);
        each_child(at, |_, child| parts.push(child.byte_range()));
        let name = parts.first().cloned().unwrap_or(node.byte_range());
        let value = parts.get(2).cloned().unwrap_or(node.end_byte()..node.end_byte());
        let plain = self.source.get(name.clone()).is_some_and(is_identifier);
        if !plain || self.source.get(name.end..value.start) != Some("=") {
            self.unclear(What::Array, node.byte_range());
        }
        self.open().assignments.push((name, value));
        self.inner(at, node, depth);
    }

    /// A redirection, and the words after its target: the grammar takes them for more targets.
    fn redirect(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        let before = self.source.get(..node.start_byte()).unwrap_or_default();
        let before = before.rsplit([' ', '\t', '\n', ';', '|', '&', '<', '>']).next().unwrap_or_default();
        // The grammar does not always see that a number, or `{name}`, right before an operator is part of it.
        if !before.is_empty() && (is_number(before) || before.ends_with('}')) {
            self.unclear(What::Syntax, node.byte_range());
        }
        let mut operator = None;
        each_child(at, |at, child| {
            match kind::name(&child) {
                "file_descriptor" => {
                    // The grammar takes `-ofile5` before an operator for one, where a shell sees a word.
                    if !self.source.get(child.byte_range()).is_some_and(is_number) {
                        self.unclear(What::Syntax, child.byte_range());
                    }
                    // A word that ends in digits is no descriptor.
                    self.token(child, Token::Word);
                    self.last = Token::Operator;
                }
                ">&-" | "<&-" => {
                    self.token(child, Token::Operator);
                    let end = self.end;
                    self.open().redirects.push((RedirectKind::Descriptor, end..end));
                    // `>&-f` is another thing altogether.
                    self.last = Token::Word;
                }
                kind if !child.is_named() => {
                    self.token(child, Token::Operator);
                    operator = Some(kind);
                    self.open();
                }
                // The grammar does not know `<>`: one half of it is an error.
                _ if child.is_error() => operator = operator.take().or(Some("<>")),
                _ => match operator.take() {
                    Some(operator) => self.target(at, child, operator, depth),
                    None => self.visit(at, child, Place::Command, depth + 1),
                },
            }
        });
    }

    fn target(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, operator: &str, depth: usize) {
        let gap = self.source.get(self.end..node.start_byte()).unwrap_or_default();
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let posix = self.dialect == Dialect::Posix;
        let (kind, certain) = match operator {
            "<" => (RedirectKind::Read, true),
            ">" | ">|" => (RedirectKind::Write, true),
            ">>" => (RedirectKind::Append, true),
            ">&" => (RedirectKind::Descriptor, !posix || is_number(text)),
            "<&" => (RedirectKind::Descriptor, is_number(text)),
            "<<<" => (RedirectKind::Text, !posix),
            // To a shell without it, this is a command in the background and an empty file.
            "&>" => (RedirectKind::Write, !posix),
            "&>>" => (RedirectKind::Append, !posix),
            _ => (RedirectKind::Write, false),
        };
        if !certain || gap.replace("\\\n", "").contains('\n') {
            self.unclear(What::Syntax, node.byte_range());
        }
        self.token(node, Token::Word);
        self.open().redirects.push((kind, node.byte_range()));
        self.inner(at, node, depth);
    }

    fn here_document(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        self.unclear(What::HereDocument, node.byte_range());
        each_child(at, |at, child| {
            if kind::name(&child) == "heredoc_body" {
                let text = self.source.get(child.byte_range()).unwrap_or_default().to_owned();
                // The rest of the first line comes before the text and may have ended the command it is for.
                let ended = self.script.commands.last_mut().map(|command| &mut command.here);
                match self.draft.as_mut().map(|draft| &mut draft.here).or(ended) {
                    Some(here) => *here = Some(text),
                    None => self.open().here = Some(text),
                }
                self.inner(at, child, depth);
            } else if child.is_named() {
                self.visit(at, child, Place::Script, depth + 1);
            }
        });
    }

    /// A comment reaches to the end of its line and begins where a word could.
    fn comment(&mut self, node: Node<'_>) {
        if !matches!(self.source.as_bytes().get(node.end_byte()), None | Some(b'\n')) {
            self.unclear(What::Syntax, node.byte_range());
        }
        self.token(node, Token::Word);
    }

    fn token(&mut self, node: Node<'_>, token: Token) {
        self.gap(node.start_byte());
        if self.last == Token::Word && token == Token::Word {
            self.unclear(What::Syntax, node.byte_range());
        }
        (self.end, self.last) = (node.end_byte(), token);
    }

    /// Checks what lies between the last token and the next: nothing but white space, where a new line ends a command.
    fn gap(&mut self, next: usize) {
        let Some(gap) = self.source.get(self.end..next) else {
            return self.unclear(What::Syntax, next..self.end);
        };
        if gap.is_empty() {
            return;
        }
        // Most gaps are one space.
        let white: Cow<'_, str> =
            if gap.contains('\\') { gap.replace("\\\n", "").into() } else { gap.into() };
        // Between two words, a line that goes on needs a space of its own; between two operators, which might be one (`;&`),
        // as well.
        let operator =
            matches!(self.source.as_bytes().get(next), Some(b'&' | b'|' | b';' | b'<' | b'>' | b'(' | b')'));
        let stuck = white.is_empty() && (self.last == Token::Word || operator);
        if stuck || !white.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
            self.unclear(What::Syntax, self.end..next);
        }
        if white.contains('\n') {
            self.finish();
        }
        (self.end, self.last) = (next, Token::Operator);
    }

    fn begin(&mut self, node: Node<'_>) {
        self.gap(node.start_byte());
        self.finish();
        self.open();
    }

    fn open(&mut self) -> &mut Draft {
        let (joined, spare, first_inner) = (&mut self.joined, &mut self.spare, self.script.commands.len());
        self.draft.get_or_insert_with(|| Draft {
            joined: std::mem::take(joined),
            first_inner,
            ..spare.take().unwrap_or_default()
        })
    }

    /// Ends the command that is being put together, if there is one.
    fn finish(&mut self) {
        let Some(mut draft) = self.draft.take() else { return };
        let simple = draft.decode(self.source, self.dialect, self.script.commands.len());
        self.script.unclear.extend(simple.unclear());
        self.script.commands.push(simple);
        self.spare = Some(draft);
    }

    fn unclear(&mut self, what: What, range: Range<usize>) {
        let text = self.source.get(range).unwrap_or_default();
        let unclear = Unclear::new(what, text);
        if self.script.unclear.last() != Some(&unclear) {
            self.script.unclear.push(unclear);
        }
    }
}

/// Whether a variable can be called so.
fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Goes through the children of a node, and back to it.
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
