//! From a script to its commands, through the grammar's tree.
//!
//! Shapes of the tree are not trusted: `a && b > f c` comes as one redirection around both commands that swallows the
//! last word. Only its tokens are used, in the order of the source, and commands are put together from them. A node that
//! is not on the list of literal ones makes the script unclear; its commands are still looked at, for what they might do.

use std::{cell::RefCell, ops::ControlFlow, ops::Range};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::{
    Assignment, Dialect, Joined, Redirect, RedirectKind, Script, Simple, Unclear, What,
    word::{self, Word},
};

/// How deep a tree is followed. A long chain of `&&` is one level per command.
const MAX_DEPTH: usize = 200;

/// How often the parser may report that it is still at work, once per hundred steps. Plain scripts need one step per
/// two or three bytes; a script of 128 KiB that needs more than this is tangled on purpose.
const MAX_PROGRESS: usize = 4000;

pub(super) fn read(source: &str, dialect: Dialect) -> Script {
    let mut reader = Reader {
        source,
        dialect,
        script: Script::default(),
        draft: None,
        joined: Joined::Apart,
        end: 0,
        last: Token::Operator,
    };
    match parse(source) {
        Some(tree) => {
            let root = tree.root_node();
            if root.has_error() {
                reader.unclear(What::Syntax, root.byte_range());
            }
            reader.visit(root, Place::Script, 0);
            reader.gap(source.len());
            reader.finish();
        }
        None => reader.unclear(What::TooHard, 0..source.len()),
    }
    reader.script
}

fn parse(source: &str) -> Option<Tree> {
    thread_local! {
        static PARSER: RefCell<Option<Parser>> = RefCell::new(new_parser());
    }
    PARSER.with_borrow_mut(|parser| {
        let parser = parser.as_mut()?;
        // A parser that was stopped would go on where it was.
        parser.reset();
        let mut progress = 0;
        let mut watch = |_: &_| {
            progress += 1;
            if progress > MAX_PROGRESS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut bytes = |at: usize, _| source.as_bytes().get(at..).unwrap_or_default();
        parser.parse_with_options(&mut bytes, None, Some(options))
    })
}

fn new_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok().map(|()| parser)
}

/// Puts commands together, token by token.
struct Reader<'a> {
    source: &'a str,
    dialect: Dialect,
    script: Script,
    draft: Option<Draft>,
    /// How the next command follows.
    joined: Joined,
    /// Where the last token ended.
    end: usize,
    last: Token,
}

/// A command so far, its words still as places in the source.
#[derive(Default)]
struct Draft {
    joined: Joined,
    assignments: Vec<(Range<usize>, Range<usize>)>,
    words: Vec<Range<usize>>,
    redirects: Vec<(RedirectKind, Range<usize>)>,
    here: Option<String>,
    first_inner: usize,
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
    fn visit(&mut self, node: Node<'_>, place: Place, depth: usize) {
        if depth > MAX_DEPTH {
            return self.unclear(What::TooDeep, node.byte_range());
        }
        if node.is_missing() {
            return self.unclear(What::Syntax, node.byte_range());
        }
        match node.kind() {
            "program" | "list" | "pipeline" | "redirected_statement" | "negated_command" => {
                self.children(node, Place::Script, depth);
            }
            "command" | "declaration_command" | "unset_command" => {
                self.begin(&node);
                self.children(node, Place::Command, depth);
            }
            "test_command" => self.test(node, depth),
            "variable_assignments" => self.children(node, Place::Script, depth),
            "variable_assignment" => self.assignment(node, place, depth),
            "file_redirect" | "herestring_redirect" => self.redirect(node, depth),
            "heredoc_redirect" => self.here_document(node, depth),
            "heredoc_body" | "heredoc_start" | "heredoc_end" => self.aside(node, depth),
            "comment" => self.comment(&node),
            kind if is_word(kind) => match place {
                Place::Command => self.word(node, depth),
                Place::Script => self.aside(node, depth),
            },
            _ if node.is_named() => self.other(node, place, depth),
            kind => self.operator(&node, kind, place),
        }
    }

    fn children(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child, place, depth + 1);
        }
    }

    /// A token of the script itself.
    fn operator(&mut self, node: &Node<'_>, kind: &str, place: Place) {
        if place == Place::Command {
            return self.plain_word(node.byte_range());
        }
        // Shells want a space after it; without one it is part of the program's name.
        if kind == "!" {
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
    fn test(&mut self, node: Node<'_>, depth: usize) {
        let plain = node.child(0).is_some_and(|first| first.kind() == "[");
        if !plain {
            self.unclear(What::Arithmetic, node.byte_range());
        }
        self.begin(&node);
        self.children(node, Place::Command, depth);
    }

    /// Whatever is not literal. Inside a test, expressions only group words.
    fn other(&mut self, node: Node<'_>, place: Place, depth: usize) {
        if place == Place::Command {
            return if node.child_count() == 0 {
                self.word(node, depth)
            } else {
                self.children(node, place, depth)
            };
        }
        let what = match node.kind() {
            "function_definition" => What::Function,
            "ERROR" => What::Syntax,
            _ => What::ControlFlow,
        };
        self.unclear(what, node.byte_range());
        self.finish();
        self.children(node, Place::Script, depth);
        self.finish();
    }

    fn word(&mut self, node: Node<'_>, depth: usize) {
        self.plain_word(node.byte_range());
        self.inner(node, depth);
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
    fn aside(&mut self, node: Node<'_>, depth: usize) {
        self.inner(node, depth);
        (self.end, self.last) = (node.end_byte(), Token::Word);
    }

    /// Commands in the substitutions of a word or a text.
    fn inner(&mut self, node: Node<'_>, depth: usize) {
        if depth > MAX_DEPTH {
            return self.unclear(What::TooDeep, node.byte_range());
        }
        if matches!(node.kind(), "command_substitution" | "process_substitution") {
            self.unclear(What::Substitution, node.byte_range());
            let outer = (self.draft.take(), self.joined, self.end, self.last);
            (self.joined, self.end, self.last) = (Joined::Apart, node.start_byte(), Token::Operator);
            self.children(node, Place::Script, depth);
            self.finish();
            (self.draft, self.joined, self.end, self.last) = outer;
        } else if node.child_count() > 0 {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor) {
                self.inner(child, depth + 1);
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let named = self.draft.as_ref().is_some_and(|draft| !draft.words.is_empty());
        if place == Place::Command && named {
            return self.word(node, depth);
        }
        let (name, value) = (node.child_by_field_name("name"), node.child_by_field_name("value"));
        self.token(&node, Token::Word);
        let name = name.map_or(node.byte_range(), |name| name.byte_range());
        let value = value.map_or(node.end_byte()..node.end_byte(), |value| value.byte_range());
        let plain = node.child(0).is_some_and(|name| name.kind() == "variable_name");
        if !plain || self.source.get(name.end..value.start) != Some("=") {
            self.unclear(What::Array, node.byte_range());
        }
        self.open().assignments.push((name, value));
        self.inner(node, depth);
    }

    /// A redirection, and the words after its target: the grammar takes them for more targets.
    fn redirect(&mut self, node: Node<'_>, depth: usize) {
        let mut kind = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_descriptor" => {
                    // A word that ends in digits is no descriptor.
                    self.token(&child, Token::Word);
                    self.last = Token::Operator;
                }
                ">&-" | "<&-" => {
                    self.token(&child, Token::Operator);
                    let end = self.end;
                    self.open().redirects.push((RedirectKind::Descriptor, end..end));
                    // `>&-f` is another thing altogether.
                    self.last = Token::Word;
                }
                operator if !child.is_named() => {
                    self.token(&child, Token::Operator);
                    kind = Some(self.redirect_kind(operator, child.byte_range()));
                    self.open();
                }
                _ => match kind.take() {
                    Some(kind) => self.target(child, kind, depth),
                    None => self.visit(child, Place::Command, depth + 1),
                },
            }
        }
    }

    fn target(&mut self, node: Node<'_>, kind: RedirectKind, depth: usize) {
        self.token(&node, Token::Word);
        self.open().redirects.push((kind, node.byte_range()));
        self.inner(node, depth);
    }

    fn redirect_kind(&mut self, operator: &str, range: Range<usize>) -> RedirectKind {
        match operator {
            "<" => RedirectKind::Read,
            ">" | ">|" => RedirectKind::Write,
            ">>" => RedirectKind::Append,
            ">&" | "<&" => RedirectKind::Descriptor,
            "<<<" | "&>" | "&>>" => {
                // To a shell without it, `&>` is a command in the background and an empty file.
                if self.dialect == Dialect::Posix {
                    self.unclear(What::Syntax, range);
                }
                match operator {
                    "<<<" => RedirectKind::Text,
                    "&>" => RedirectKind::Write,
                    _ => RedirectKind::Append,
                }
            }
            _ => {
                self.unclear(What::Syntax, range);
                RedirectKind::Write
            }
        }
    }

    fn here_document(&mut self, node: Node<'_>, depth: usize) {
        self.unclear(What::HereDocument, node.byte_range());
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "heredoc_body" => {
                    let text = self.source.get(child.byte_range()).unwrap_or_default().to_owned();
                    // The rest of the first line comes before the text and may have ended the command it is for.
                    let ended = self.script.commands.last_mut().map(|command| &mut command.here);
                    match self.draft.as_mut().map(|draft| &mut draft.here).or(ended) {
                        Some(here) => *here = Some(text),
                        None => self.open().here = Some(text),
                    }
                    self.inner(child, depth);
                }
                _ if child.is_named() => self.visit(child, Place::Script, depth + 1),
                _ => {}
            }
        }
    }

    /// A comment reaches to the end of its line and begins where a word could.
    fn comment(&mut self, node: &Node<'_>) {
        if !matches!(self.source.as_bytes().get(node.end_byte()), None | Some(b'\n')) {
            self.unclear(What::Syntax, node.byte_range());
        }
        self.token(node, Token::Word);
    }

    fn token(&mut self, node: &Node<'_>, token: Token) {
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
        let white = gap.replace("\\\n", "");
        // Between two words, a line that goes on needs a space of its own.
        let stuck = white.is_empty() && self.last == Token::Word;
        if stuck || !white.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
            self.unclear(What::Syntax, self.end..next);
        }
        if white.contains('\n') {
            self.finish();
        }
        (self.end, self.last) = (next, Token::Operator);
    }

    fn begin(&mut self, node: &Node<'_>) {
        self.gap(node.start_byte());
        self.finish();
        self.open();
    }

    fn open(&mut self) -> &mut Draft {
        let (joined, first_inner) = (&mut self.joined, self.script.commands.len());
        self.draft.get_or_insert_with(|| Draft {
            joined: std::mem::take(joined),
            first_inner,
            ..Draft::default()
        })
    }

    /// Ends the command that is being put together, if there is one.
    fn finish(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        let text = |range: &Range<usize>| self.source.get(range.clone()).unwrap_or_default();
        let decode = |range: &Range<usize>| word::decode(text(range), self.dialect);
        let assignments = draft.assignments.iter().map(|(name, value)| Assignment {
            name: text(name).to_owned(),
            value: single(text(value), decode(value)),
        });
        let redirects = draft.redirects.iter().map(|(kind, target)| {
            let target = single(text(target), decode(target));
            Redirect { kind: descriptor_or_file(*kind, &target), target }
        });
        let simple = Simple {
            assignments: assignments.collect(),
            redirects: redirects.collect(),
            words: draft.words.iter().flat_map(decode).collect(),
            joined: draft.joined,
            here: draft.here,
            inner: draft.first_inner..self.script.commands.len(),
        };
        let assigned = simple.assignments.iter().map(|assignment| &assignment.value);
        let targets = simple.redirects.iter().map(|redirect| &redirect.target);
        let found = simple.words.iter().chain(assigned).chain(targets);
        let found: Vec<_> = found.filter_map(|word| Some(Unclear::new(word.unclear?, &word.text))).collect();
        self.script.unclear.extend(found);
        self.script.commands.push(simple);
    }

    fn unclear(&mut self, what: What, range: Range<usize>) {
        let text = self.source.get(range).unwrap_or_default();
        let unclear = Unclear::new(what, text);
        if self.script.unclear.last() != Some(&unclear) {
            self.script.unclear.push(unclear);
        }
    }
}

/// The word of a place that takes exactly one.
fn single(source: &str, words: Vec<Word>) -> Word {
    let several = Word { text: source.to_owned(), unclear: Some(What::Brace), ..Word::default() };
    let mut words = words.into_iter();
    match (words.next(), words.next()) {
        (None, None) => Word::default(),
        (Some(word), None) => word,
        _ => several,
    }
}

/// `>&1` copies a descriptor, `>& f` writes a file.
fn descriptor_or_file(kind: RedirectKind, target: &Word) -> RedirectKind {
    let digits = target.text.bytes().all(|byte| byte.is_ascii_digit());
    if kind == RedirectKind::Descriptor && !digits { RedirectKind::Write } else { kind }
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "command_name"
            | "string"
            | "raw_string"
            | "number"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "ansi_c_string"
            | "translated_string"
            | "brace_expression"
            | "arithmetic_expansion"
            | "variable_name"
            | "test_operator"
            | "regex"
            | "extglob_pattern"
            | "array"
            | "subscript"
    )
}
