//! Kinds of nodes in the syntax tree.

use std::sync::LazyLock;

use tree_sitter::{Language, Node};

/// The number of the error node, which the grammar does not name.
const ERROR: u16 = u16::MAX;

/// The kinds of nodes that the reader distinguishes. A kind that is not listed is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// Holds commands and the operators between them.
    Group,
    /// Holds the words of one command.
    Command,
    /// `[ … ]` or `[[ … ]]`.
    Test,
    /// `NAME=value`.
    Assignment,
    /// An operator with its target.
    Redirect,
    /// A here-document with the rest of its line.
    HereDocument,
    /// A piece of a here-document.
    HereText,
    Comment,
    /// One word, or a part of one.
    Word,
    /// A word that is made of the output of commands.
    Substitution,
    Function,
    /// `if`, `for`, `while`, `case`, groups, subshells, and expressions of tests and arithmetic.
    ControlFlow,
    /// A text that the grammar could not parse, or a named node that is none of these.
    Error,
    /// A token without a name.
    Token,
}

impl NodeKind {
    pub(super) fn from_node(node: &Node<'_>) -> Self {
        entry(node).0
    }

    fn named(name: &str) -> Self {
        match name {
            "program"
            | "list"
            | "pipeline"
            | "redirected_statement"
            | "negated_command"
            | "variable_assignments" => Self::Group,
            "command" | "declaration_command" | "unset_command" => Self::Command,
            "test_command" => Self::Test,
            "variable_assignment" => Self::Assignment,
            "file_redirect" => Self::Redirect,
            "heredoc_redirect" => Self::HereDocument,
            "heredoc_body" | "heredoc_content" | "heredoc_start" | "heredoc_end" => Self::HereText,
            "comment" => Self::Comment,
            "word"
            | "command_name"
            | "string"
            | "raw_string"
            | "number"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "ansi_c_string"
            | "translated_string"
            | "brace_expression"
            | "arithmetic_expansion"
            | "variable_name"
            | "special_variable_name"
            | "test_operator"
            | "regex"
            | "extglob_pattern"
            | "array"
            | "subscript" => Self::Word,
            "command_substitution" | "process_substitution" => Self::Substitution,
            "function_definition" => Self::Function,
            "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "case_item"
            | "do_group"
            | "compound_statement"
            | "subshell"
            | "unary_expression"
            | "binary_expression"
            | "ternary_expression"
            | "postfix_expression"
            | "parenthesized_expression" => Self::ControlFlow,
            _ => Self::Error,
        }
    }
}

/// Returns the name of a node in the grammar; for an operator, the operator itself. The node has
/// the same name, but would measure and check the text every time.
pub(super) fn name(node: &Node<'_>) -> &'static str {
    entry(node).1
}

/// Returns kind and name by the number of a node in the grammar.
fn entry(node: &Node<'_>) -> (NodeKind, &'static str) {
    static TABLE: LazyLock<Vec<(NodeKind, &str)>> = LazyLock::new(table);
    match node.kind_id() {
        ERROR => (NodeKind::Error, "ERROR"),
        id => TABLE.get(usize::from(id)).copied().unwrap_or((NodeKind::Error, "")),
    }
}

fn table() -> Vec<(NodeKind, &'static str)> {
    static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());
    let ids = 0..u16::try_from(LANGUAGE.node_kind_count()).unwrap_or(u16::MAX);
    let entry = |id| match LANGUAGE.node_kind_for_id(id) {
        Some(name) if LANGUAGE.node_kind_is_named(id) => (NodeKind::named(name), name),
        Some(name) => (NodeKind::Token, name),
        None => (NodeKind::Error, ""),
    };
    ids.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_known_by_its_number() {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
        let tree = parser.parse(") ls", None).unwrap();
        let mut cursor = tree.walk();
        let children: Vec<_> = tree.root_node().children(&mut cursor).collect();
        let found = std::iter::once(tree.root_node()).chain(children).find(Node::is_error).unwrap();
        assert_eq!((NodeKind::from_node(&found), name(&found)), (NodeKind::Error, "ERROR"));
    }
}
