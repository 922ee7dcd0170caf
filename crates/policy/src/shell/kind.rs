//! What the nodes of the grammar's tree are to us.

use std::sync::LazyLock;

use tree_sitter::{Language, Node};

/// The kinds of nodes that we tell apart. Whatever is not listed is `Other`, and not literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// What the grammar did not understand.
    Error,
    /// A named node that is none of these.
    Other,
    /// A token without a name.
    Token,
}

impl Kind {
    pub(super) fn of(node: &Node<'_>) -> Self {
        static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(table);
        if node.is_error() {
            return Self::Error;
        }
        KINDS.get(usize::from(node.kind_id())).copied().unwrap_or(Self::Other)
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
            "file_redirect" | "herestring_redirect" => Self::Redirect,
            "heredoc_redirect" => Self::HereDocument,
            "heredoc_body" | "heredoc_start" | "heredoc_end" => Self::HereText,
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
            | "test_operator"
            | "regex"
            | "extglob_pattern"
            | "array"
            | "subscript" => Self::Word,
            "command_substitution" | "process_substitution" => Self::Substitution,
            "function_definition" => Self::Function,
            _ => Self::Other,
        }
    }
}

/// The kind of every number the grammar gives its nodes.
fn table() -> Vec<Kind> {
    let language: Language = tree_sitter_bash::LANGUAGE.into();
    let ids = 0..u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let kind = |id| match language.node_kind_for_id(id) {
        Some(name) if language.node_kind_is_named(id) => Kind::named(name),
        Some(_) => Kind::Token,
        None => Kind::Other,
    };
    ids.map(kind).collect()
}
