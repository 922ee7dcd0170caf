//! Outlines by tree-sitter grammar. Parsing stops early if the text is not source code, which
//! bounds the cost.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree, TreeCursor};
use windlass_contract::insight::Section;

use super::{MAX_SECTIONS, keep};

/// Maximum length of a text that gets an outline.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Parser steps allowed per KiB of text, and the steps that every text gets. Sources need 4 to 13
/// per KiB, endless brackets 40.
const STEPS_PER_KIB: usize = 16;
const MIN_STEPS: usize = 100;

/// Maximum number of steps with a syntax error. The parser recovers from a mistake in a source
/// within one step. Text that is not source is all errors and takes a hundred times as long.
const MAX_ERROR_STEPS: usize = 16;

/// A tree-sitter language, and the node kinds that define something with their section kinds.
pub(super) struct OutlineGrammar {
    language: Language,
    kinds: &'static [(&'static str, &'static str)],
}

impl OutlineGrammar {
    pub(super) fn for_language(language: &str) -> Option<Self> {
        let (language, kinds): (Language, _) = match language {
            "Rust" => (tree_sitter_rust::LANGUAGE.into(), RUST),
            "Python" => (tree_sitter_python::LANGUAGE.into(), PYTHON),
            // The TSX grammar also accepts JavaScript, with or without JSX.
            "JavaScript" | "TypeScript" | "TSX" => (tree_sitter_typescript::LANGUAGE_TSX.into(), TYPESCRIPT),
            "Go" => (tree_sitter_go::LANGUAGE.into(), GO),
            "Java" => (tree_sitter_java::LANGUAGE.into(), JAVA),
            "C" => (tree_sitter_c::LANGUAGE.into(), C),
            _ => return None,
        };
        Some(Self { language, kinds })
    }

    /// Returns the definitions of a text, or nothing if it is too long or does not parse.
    pub(super) fn outline(&self, text: &str) -> Vec<Section> {
        self.parsed(text).map(|tree| self.definitions(tree.walk(), text)).unwrap_or_default()
    }

    fn parsed(&self, text: &str) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.language).ok()?;
        let (mut left, mut lost) = (MIN_STEPS + text.len() * STEPS_PER_KIB / 1024, MAX_ERROR_STEPS);
        let mut watch = |state: &ParseState| {
            left = left.saturating_sub(1);
            lost = lost.saturating_sub(usize::from(state.has_error()));
            if left == 0 || lost == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let mut input = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
        let fits = text.len() <= MAX_TEXT_BYTES;
        fits.then(|| parser.parse_with_options(&mut input, None, Some(options))).flatten()
    }

    /// Walks all nodes except the bodies of functions. Iterative, because a text may be nested as
    /// deep as it is long.
    fn definitions(&self, mut at: TreeCursor<'_>, text: &str) -> Vec<Section> {
        let mut found = Vec::new();
        // Tree depth of each definition that encloses this node.
        let mut enclosing: Vec<u32> = Vec::new();
        while found.len() < MAX_SECTIONS {
            let node = at.node();
            let defined = self.defined(node, text);
            if let Some((kind, name)) = &defined {
                let line = u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX);
                keep(&mut found, kind, name, line, enclosing.len());
            }
            let is_function = defined.as_ref().is_some_and(|(kind, _)| *kind == "function");
            if !is_function && at.goto_first_child() {
                enclosing.extend(defined.map(|_| at.depth()));
                continue;
            }
            while !at.goto_next_sibling() {
                if enclosing.last() == Some(&at.depth()) {
                    enclosing.pop();
                }
                if !at.goto_parent() {
                    return found;
                }
            }
        }
        found
    }

    /// Returns the kind and name of the definition that a node is.
    fn defined(&self, node: Node<'_>, text: &str) -> Option<(&'static str, String)> {
        let (_, kind) = self.kinds.iter().find(|(known, _)| *known == node.kind())?;
        let of = |field: &str| Some(&text[node.child_by_field_name(field)?.byte_range()]);
        let name = match node.kind() {
            "impl_item" => {
                let subject = of("type")?;
                of("trait").map_or(subject.to_owned(), |of| format!("{of} for {subject}"))
            }
            "method_declaration" if of("receiver").is_some() => {
                format!("{} {}", of("receiver")?, of("name")?)
            }
            // A variable counts if its value is a function.
            "variable_declarator" | "public_field_definition" => {
                let value = node.child_by_field_name("value")?.kind();
                let is_function = matches!(value, "arrow_function" | "function_expression");
                is_function.then(|| of("name").map(str::to_owned)).flatten()?
            }
            // Without a body it is a reference, not a definition.
            "struct_specifier" | "enum_specifier" | "union_specifier" => {
                of("body")?;
                of("name")?.to_owned()
            }
            "function_definition" | "type_definition" if of("name").is_none() => declared(node, text)?,
            _ => of("name")?.to_owned(),
        };
        Some((kind, name.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Returns the name inside a C declarator such as `*name(int)`.
fn declared(node: Node<'_>, text: &str) -> Option<String> {
    let mut inner = node.child_by_field_name("declarator")?;
    while let Some(next) = inner.child_by_field_name("declarator") {
        inner = next;
    }
    inner.kind().ends_with("identifier").then(|| text[inner.byte_range()].to_owned())
}

const RUST: &[(&str, &str)] = &[
    ("function_item", "function"),
    ("function_signature_item", "function"),
    ("struct_item", "struct"),
    ("enum_item", "enum"),
    ("trait_item", "trait"),
    ("impl_item", "impl"),
    ("mod_item", "module"),
    ("type_item", "type"),
    ("union_item", "union"),
    ("macro_definition", "macro"),
];

const PYTHON: &[(&str, &str)] = &[("function_definition", "function"), ("class_definition", "class")];

const TYPESCRIPT: &[(&str, &str)] = &[
    ("function_declaration", "function"),
    ("generator_function_declaration", "function"),
    ("function_signature", "function"),
    ("method_definition", "function"),
    ("abstract_method_signature", "function"),
    ("variable_declarator", "function"),
    ("public_field_definition", "function"),
    ("class_declaration", "class"),
    ("abstract_class_declaration", "class"),
    ("interface_declaration", "interface"),
    ("enum_declaration", "enum"),
    ("type_alias_declaration", "type"),
    ("internal_module", "module"),
    ("module", "module"),
];

const GO: &[(&str, &str)] = &[
    ("function_declaration", "function"),
    ("method_declaration", "function"),
    ("type_spec", "type"),
    ("type_alias", "type"),
];

const JAVA: &[(&str, &str)] = &[
    ("class_declaration", "class"),
    ("record_declaration", "class"),
    ("interface_declaration", "interface"),
    ("annotation_type_declaration", "interface"),
    ("enum_declaration", "enum"),
    ("method_declaration", "function"),
    ("constructor_declaration", "function"),
];

const C: &[(&str, &str)] = &[
    ("function_definition", "function"),
    ("struct_specifier", "struct"),
    ("enum_specifier", "enum"),
    ("union_specifier", "union"),
    ("type_definition", "type"),
];

#[cfg(test)]
mod tests {
    use super::{super::tests::outline, *};

    #[test]
    fn every_grammar_knows_the_kinds_that_are_asked_of_it() {
        for language in ["Rust", "Python", "TypeScript", "Go", "Java", "C"] {
            let grammar = OutlineGrammar::for_language(language).unwrap();
            for (kind, _) in grammar.kinds {
                assert_ne!(grammar.language.id_for_node_kind(kind, true), 0, "{language}: {kind}");
            }
        }
    }

    #[test]
    fn every_language_has_its_definitions() {
        assert_eq!(
            outline(
                "Rust",
                "use a;\npub(crate) struct Till<T> {\n    a: T,\n}\n\nimpl<T> Till<T> {\n    pub async fn\n    sum(&self) {\n        fn inner() {}\n    }\n}\nimpl fmt::Display\n    for Till<u8> { fn fmt(&self); }\nmod tests { struct A; }\nmacro_rules! x { () => {} }\n"
            ),
            [
                "2 0 struct Till",
                "6 0 impl Till<T>",
                "7 1 function sum",
                "12 0 impl fmt::Display for Till<u8>",
                "13 1 function fmt",
                "14 0 module tests",
                "14 1 struct A",
                "15 0 macro x"
            ]
        );
        assert_eq!(
            outline(
                "Python",
                "class Till(Base):\n    @property\n    def sum(self):\n        pass\n\nasync def main():\n    x = \"def no():\"\nif x:\n    def other(): pass\n"
            ),
            ["1 0 class Till", "3 1 function sum", "6 0 function main", "9 0 function other"]
        );
        assert_eq!(
            outline(
                "TypeScript",
                "export default class Till {\n  sum(a: number): number {\n    if (a) {\n    }\n  }\n  add = (a: number) => a;\n  left = 3;\n}\nexport const add = (a: number) => {\n}, b = 3;\nfunction main() {}\nnamespace A { interface B {} }\n"
            ),
            [
                "1 0 class Till",
                "2 1 function sum",
                "6 1 function add",
                "9 0 function add",
                "11 0 function main",
                "12 0 module A",
                "12 1 interface B"
            ]
        );
        assert_eq!(
            outline("JavaScript", "const App = function () { return <a href=\"\">x</a>; };\n"),
            ["1 0 function App"]
        );
        assert_eq!(
            outline(
                "Go",
                "package a\n\ntype (\n\tTill struct {\n\t}\n\tSums = []int\n)\n\nfunc (t *Till) Sum() int {\n}\nfunc main() {}\n"
            ),
            ["4 0 type Till", "6 0 type Sums", "9 0 function (t *Till) Sum", "11 0 function main"]
        );
        assert_eq!(
            outline(
                "Java",
                "package a;\npublic final class Till {\n    Till() {}\n    private int sum(int a)\n    {\n        return add(1);\n    }\n    enum Coin { ONE }\n}\n"
            ),
            ["2 0 class Till", "3 1 function Till", "4 1 function sum", "8 1 enum Coin"]
        );
        assert_eq!(
            outline(
                "C",
                "struct till {\n    int a;\n};\nstruct till *open(void);\ntypedef unsigned long sums;\nstatic int *sum(int a)\n{\n    add(a);\n}\nint main(void) {\n}\n"
            ),
            ["1 0 struct till", "5 0 type sums", "6 0 function sum", "10 0 function main"]
        );
    }

    #[test]
    fn a_mistake_costs_no_more_than_itself() {
        let found = outline("Rust", "fn a( { let x = ; \nstruct B;\nimpl B {\n    fn c() {}\n}\n");
        assert!(found.iter().any(|line| line.ends_with("struct B")), "{found:?}");
    }

    #[test]
    fn what_is_no_source_is_given_up() {
        let mut state = 1u64;
        let mut noise = String::new();
        while noise.len() < 16 * 1024 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.extend(char::from_u32(u32::try_from(state >> 33).unwrap_or(0) % 256));
        }
        for language in ["Rust", "Python", "Go", "Java", "C"] {
            assert!(OutlineGrammar::for_language(language).unwrap().parsed(&noise).is_none(), "{language}");
        }
        let nested = "{([".repeat(8 * 1024);
        for language in ["TypeScript", "Java", "C"] {
            assert!(OutlineGrammar::for_language(language).unwrap().parsed(&nested).is_none(), "{language}");
        }
        assert!(OutlineGrammar::for_language("C").unwrap().parsed(&";".repeat(MAX_TEXT_BYTES + 1)).is_none());
    }
}
