//! Reads the texts inside words: substitutions, arithmetic, and here-documents.

use std::ops::Range;

use tree_sitter::{Node, TreeCursor};

use super::{MAX_DEPTH, ScriptReader, TokenContext, TokenKind, each_child};
use crate::shell::{
    CommandSeparator, ShellDialect, ShellScript, UnclearKind,
    evaluation::{expands_values, is_arithmetic, is_quoted_code},
    here::HereDocument,
    kind::{self, NodeKind},
    substitution,
};

impl ScriptReader<'_> {
    /// Reads the commands in the substitutions of a word or a text. In double quotes and
    /// here-documents, single quotes protect nothing.
    pub(super) fn inner(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize, in_quotes: bool) {
        // Most words have no substitution and need no walk: every form of it contains one of these
        // bytes.
        let text = self.source.as_bytes().get(node.byte_range()).unwrap_or_default();
        if !text.iter().any(|byte| matches!(byte, b'`' | b'(')) {
            return;
        }
        if depth > MAX_DEPTH {
            return self.unclear(UnclearKind::TooDeep, node.byte_range());
        }
        let name = kind::name(&node);
        self.word_end = self.word_end.max(node.end_byte());
        if NodeKind::from_node(&node) == NodeKind::Substitution {
            // The grammar does not know that backquotes take away backslashes.
            let text = self.source.get(node.byte_range()).unwrap_or_default();
            if text.starts_with('`') && text.contains('\\') {
                return self.text(node.byte_range(), in_quotes);
            }
            self.unclear(UnclearKind::Substitution, node.byte_range());
            let outer = (self.draft.take(), self.joined, self.end, self.last);
            (self.joined, self.end, self.last) =
                (CommandSeparator::Apart, node.start_byte(), TokenKind::Operator);
            self.children(at, TokenContext::Script, depth);
            self.finish();
            (self.draft, self.joined, self.end, self.last) = outer;
            return;
        }
        let is_arithmetic = name == "arithmetic_expansion";
        if is_arithmetic {
            self.arithmetic(node);
        }
        if node.child_count() == 0 {
            let is_protected = matches!(name, "raw_string" | "ansi_c_string") && !in_quotes;
            return if node.is_named() && !is_protected {
                self.text(node.byte_range(), in_quotes)
            };
        }
        let in_quotes = in_quotes || is_arithmetic || matches!(name, "string" | "heredoc_body");
        let mut end = node.start_byte();
        each_child(at, |at, child| {
            self.text(end..child.start_byte(), in_quotes);
            self.inner(at, child, depth + 1, in_quotes);
            end = child.end_byte();
        });
        self.text(end..node.end_byte(), in_quotes);
    }

    /// Reads the commands in a text that the grammar has no nodes for.
    fn text(&mut self, range: Range<usize>, in_quotes: bool) {
        let text = self.source.get(range.clone()).unwrap_or_default();
        let Some(first) = substitution::first(text, in_quotes) else { return };
        let start = range.start;
        self.unclear(UnclearKind::Substitution, range);
        let Some(scripts) = substitution::backquoted(text) else {
            let rest = self.source.get(start + first..self.word_end).unwrap_or_default();
            return self.script.unread.push(rest.to_owned());
        };
        for script in scripts {
            let ShellScript { mut commands, unclear, unread } = ShellScript::parse(&script, self.dialect);
            let before = self.script.commands.len();
            for command in &mut commands {
                command.inner = command.inner.start + before..command.inner.end + before;
            }
            self.script.commands.extend(commands);
            self.script.unclear.extend(unclear);
            self.script.unread.extend(unread);
        }
    }

    /// Looks at the source of a word for quoted code, and for expansions that evaluate values.
    pub(super) fn note(&mut self, node: Node<'_>) {
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        self.quoted_code.is_present |= is_quoted_code(text);
        self.quoted_code.is_evaluated |= expands_values(text);
    }

    /// Checks that a shell reads arithmetic, too. Without `))` at its end, or in a shell that has
    /// no `((`, it is a subshell in a subshell.
    pub(super) fn arithmetic(&mut self, node: Node<'_>) {
        self.quoted_code.is_evaluated = true;
        let text = self.source.get(node.byte_range()).unwrap_or_default();
        let is_subshell = text.starts_with("((") && self.dialect == ShellDialect::Posix;
        if is_subshell || !is_arithmetic(text) {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
    }

    pub(super) fn here_document(&mut self, at: &mut TreeCursor<'_>, node: Node<'_>, depth: usize) {
        self.unclear(UnclearKind::HereDocument, node.byte_range());
        let mut here = HereDocument { delimiter: 0..0, end: 0..0, strips_tabs: false };
        each_child(at, |_, child| match kind::name(&child) {
            "<<-" => here.strips_tabs = true,
            "heredoc_start" => here.delimiter = child.byte_range(),
            "heredoc_end" => here.end = child.byte_range(),
            _ => {}
        });
        let is_literal = here.is_literal(self.source);
        if is_literal.is_none() {
            self.unclear(UnclearKind::Syntax, node.byte_range());
        }
        each_child(at, |at, child| {
            if kind::name(&child) == "heredoc_body" {
                let text = self.source.get(child.byte_range()).unwrap_or_default().to_owned();
                // The rest of the first line comes before the text and may have ended the command
                // it is for.
                let ended = self.script.commands.last_mut().map(|command| &mut command.here);
                match self.draft.as_mut().map(|draft| &mut draft.here).or(ended) {
                    Some(here) => *here = Some(text),
                    None => self.open().here = Some(text),
                }
                if is_literal == Some(true) {
                    let text = self.source.get(child.byte_range()).unwrap_or_default();
                    self.quoted_code.is_present |= text.contains(['$', '`']);
                } else {
                    self.inner(at, child, depth, true);
                }
            } else if child.is_named() {
                // The command that a word after the delimiter belongs to may have ended already.
                let kind = NodeKind::from_node(&child);
                if matches!(kind, NodeKind::Word | NodeKind::Substitution | NodeKind::Assignment) {
                    self.unclear(UnclearKind::Syntax, child.byte_range());
                }
                self.visit(at, child, TokenContext::Script, depth + 1);
            }
        });
    }
}
