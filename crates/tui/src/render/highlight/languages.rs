//! The words and signs of common languages, as far as colours need them.

/// The signs and words of a language.
#[derive(Debug)]
pub(super) struct CodeLanguage {
    /// Names that people write above code, separated by blanks.
    names: &'static str,
    /// Signs after which the rest of a line is a comment.
    pub(super) line_comments: &'static [&'static str],
    /// The ends of comments over several lines.
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Signs around a string on one line.
    pub(super) quotes: &'static str,
    /// Signs around a string over several lines.
    pub(super) long_quotes: &'static [&'static str],
    /// The sign after the key of a value.
    pub(super) key_sign: Option<char>,
    /// Set if the case of keywords does not matter.
    pub(super) ignores_case: bool,
    /// Keywords, separated by blanks.
    keywords: &'static str,
}

/// Words that are constants in most languages.
const CONSTANTS: [&str; 11] =
    ["true", "false", "null", "nil", "None", "True", "False", "undefined", "NULL", "nullptr", "NaN"];

const SLASHES: &[&str] = &["//"];
const HASH: &[&str] = &["#"];
const STARS: Option<(&str, &str)> = Some(("/*", "*/"));

const PLAIN: CodeLanguage = CodeLanguage {
    names: "",
    line_comments: &[],
    block_comment: None,
    quotes: "\"'",
    long_quotes: &[],
    key_sign: None,
    ignores_case: false,
    keywords: "",
};

const C_LIKE: CodeLanguage = CodeLanguage { line_comments: SLASHES, block_comment: STARS, ..PLAIN };

/// The languages. What is not here has one colour.
const LANGUAGES: &[CodeLanguage] = &[
    CodeLanguage {
        names: "rust rs",
        quotes: "\"",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop \
            match mod move mut pub ref return self Self static struct super trait type unsafe use where while",
        ..C_LIKE
    },
    CodeLanguage {
        names: "c h cpp c++ cc hpp cxx objc arduino",
        keywords: "auto bool break case catch char class const constexpr continue default delete do double else \
            enum explicit extern float for friend if inline int long namespace new noexcept operator private \
            protected public return short signed sizeof static struct switch template this throw try typedef \
            typename union unsigned using virtual void volatile while #include #define #ifdef #ifndef #endif #if",
        ..C_LIKE
    },
    CodeLanguage {
        names: "java kotlin kt scala groovy csharp cs c# dart swift",
        long_quotes: &["\"\"\""],
        keywords: "abstract actor as async await base boolean break byte case catch char class companion const \
            continue data def default defer do double else enum extends extension final finally float for foreach \
            fun func guard if implements import in init inline instanceof int interface internal is lateinit let \
            long namespace native new object open operator out override package private protected protocol public \
            readonly return sealed short static string struct super suspend switch synchronized this throw throws \
            trait try typealias typeof using val var virtual void volatile when where while with yield",
        ..C_LIKE
    },
    CodeLanguage {
        names: "go golang",
        long_quotes: &["`"],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import \
            interface map package range return select struct switch type var",
        ..C_LIKE
    },
    CodeLanguage {
        names: "javascript js jsx mjs cjs typescript ts tsx mts svelte vue",
        long_quotes: &["`"],
        keywords: "abstract any as async await boolean break case catch class const continue debugger declare \
            default delete do else enum export extends finally for from function get if implements import in \
            instanceof interface keyof let namespace never new number of private protected public readonly return \
            satisfies set static string super switch this throw try type typeof unknown var void while with yield",
        ..C_LIKE
    },
    CodeLanguage {
        names: "php",
        line_comments: &["//", "#"],
        block_comment: STARS,
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else \
            elseif empty enum extends final finally fn for foreach function global if implements include \
            instanceof interface isset match namespace new or print private protected public readonly require \
            return static switch throw trait try unset use var while yield",
        ..PLAIN
    },
    CodeLanguage {
        names: "python py python3",
        line_comments: HASH,
        long_quotes: &["\"\"\"", "'''"],
        keywords: "and as assert async await break case class continue def del elif else except finally for from \
            global if import in is lambda match nonlocal not or pass raise return self try while with yield",
        ..PLAIN
    },
    CodeLanguage {
        names: "ruby rb elixir ex exs crystal",
        line_comments: HASH,
        keywords: "alias and begin break case class def defmodule do else elsif end ensure fn for if import in \
            module next nil not or raise redo require rescue retry return self super then undef unless until use \
            when while yield",
        ..PLAIN
    },
    CodeLanguage {
        names: "bash sh shell zsh console shellsession fish dockerfile docker makefile make",
        line_comments: HASH,
        keywords: "case do done elif else esac export fi for function if in local return set shift then trap \
            unset until while sudo FROM RUN CMD COPY ADD ENV ARG WORKDIR EXPOSE ENTRYPOINT USER VOLUME LABEL",
        ..PLAIN
    },
    CodeLanguage {
        names: "powershell ps1 pwsh",
        line_comments: HASH,
        block_comment: Some(("<#", "#>")),
        ignores_case: true,
        keywords: "begin break catch class continue do else elseif end exit finally for foreach function if in \
            param process return switch throw try until using while",
        ..PLAIN
    },
    CodeLanguage {
        names: "sql mysql postgresql postgres sqlite plsql",
        line_comments: &["--"],
        block_comment: STARS,
        ignores_case: true,
        keywords: "add all alter and as asc begin between by case check column commit constraint create cross \
            default delete desc distinct drop else end exists foreign from full group having if in index inner \
            insert into is join key left like limit not null offset on or order outer primary references returning \
            right rollback select set table then transaction union unique update using values view when where with",
        ..PLAIN
    },
    CodeLanguage {
        names: "lua",
        line_comments: &["--"],
        long_quotes: &["[["],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        ..PLAIN
    },
    CodeLanguage {
        names: "haskell hs elm",
        line_comments: &["--"],
        block_comment: Some(("{-", "-}")),
        quotes: "\"",
        keywords: "case class data deriving do else if import in infix instance let module newtype of qualified \
            then type where",
        ..PLAIN
    },
    CodeLanguage {
        names: "zig nix",
        line_comments: &["//", "#"],
        keywords: "and break catch comptime const continue defer else enum error export fn for if in inherit let \
            or orelse pub rec return struct switch test try union var while with",
        ..PLAIN
    },
    CodeLanguage { names: "json jsonc json5", key_sign: Some(':'), ..C_LIKE },
    CodeLanguage { names: "yaml yml", line_comments: HASH, key_sign: Some(':'), ..PLAIN },
    CodeLanguage {
        names: "toml ini cfg conf properties env",
        line_comments: &["#", ";"],
        long_quotes: &["\"\"\"", "'''"],
        key_sign: Some('='),
        ..PLAIN
    },
    CodeLanguage {
        names: "html xml svg xhtml htm",
        block_comment: Some(("<!--", "-->")),
        quotes: "\"",
        key_sign: Some('='),
        ..PLAIN
    },
    CodeLanguage { names: "css scss less", key_sign: Some(':'), ..C_LIKE },
    CodeLanguage {
        names: "hcl terraform tf proto protobuf graphql gql",
        line_comments: &["#", "//"],
        block_comment: STARS,
        keywords: "data enum extend fragment import input interface locals message module mutation oneof option \
            output package provider query repeated required resource returns rpc scalar schema service \
            subscription syntax terraform type union variable",
        ..PLAIN
    },
];

impl CodeLanguage {
    /// Finds a language by a name that people write above code.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_lowercase();
        LANGUAGES.iter().find(|language| language.names.split(' ').any(|known| known == name))
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        let is_same = |known: &str| known == word || (self.ignores_case && known.eq_ignore_ascii_case(word));
        self.keywords.split(' ').any(|known| !known.is_empty() && is_same(known))
    }

    pub(super) fn is_constant(word: &str) -> bool {
        CONSTANTS.contains(&word)
    }
}
