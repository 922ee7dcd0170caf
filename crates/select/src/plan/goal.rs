//! What a request wants: the first rule that recognises it decides.

use super::{
    phrases::Phrase,
    reading::{Part, Reading, Scope},
    words::Word,
};

mod change;
mod command;
mod git;
mod look;
mod rank;
mod vocabulary;

pub(super) use git::{Commits, Since};
pub(super) use rank::{Order, RANKED, Rank};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    Show {
        files: Vec<String>,
        part: Part,
    },
    Define {
        name: String,
        show: bool,
    },
    FindFiles {
        scope: Scope,
        name: Option<String>,
    },
    Rank(Rank),
    Search {
        texts: Vec<String>,
        scope: Scope,
        want: Want,
        /// Whether it must stand alone: who uses `total` does not mean `subtotal`.
        whole_word: bool,
    },
    List {
        directory: Option<String>,
    },
    Layout,
    /// What the project says about itself, and its layout.
    About,
    Run {
        command: String,
    },
    Test {
        filter: Option<String>,
        code: bool,
    },
    CountLines(Scope),
    CountFiles(Scope),
    Compare {
        one: String,
        two: String,
    },
    Status,
    Branches,
    Log(Commits),
    CountCommits {
        path: Option<String>,
    },
    Diff {
        path: Option<String>,
    },
    ChangesSince(Since),
    Blame {
        file: String,
        line: Option<u64>,
    },
    Authors,
    Create {
        path: String,
        content: String,
    },
    Replace {
        file: String,
        old: String,
        new: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Delete {
        file: String,
    },
    Copy {
        from: String,
        to: String,
    },
    Append {
        file: String,
        text: String,
    },
    MakeDirectory {
        path: String,
    },
    DeleteDirectory {
        name: String,
    },
    /// Give a key of a file another value.
    SetValue {
        file: Option<String>,
        key: String,
        value: String,
    },
    /// `don't delete a.txt`, and nothing else.
    LeaveAlone {
        name: Option<String>,
    },
    /// `don't run the tests`, and nothing else.
    RunNothing,
    Greet,
    /// It cannot be done, or not without knowing more.
    Say(Phrase),
    /// A word could turn the request into another one than the nearest that can be done.
    Unaccounted {
        word: String,
        /// A request that would be understood, in English and in Chinese.
        example: (&'static str, &'static str),
    },
}

/// What is wanted of the places that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Places,
    Files,
    Count,
    Around(u64),
}

/// Recognises one kind of request.
type Rule = fn(&Reading) -> Option<Goal>;

/// Narrow rules first: what changes something, then what needs judgement, then what only looks.
const RULES: [Rule; 29] = [
    refrain,
    change::delete_directory,
    change::delete,
    change::rename,
    change::copy,
    change::replace,
    change::append,
    change::make_directory,
    change::create,
    command::act,
    command::run,
    layout,
    judgement,
    command::test,
    compare,
    git::blame,
    git::branches,
    git::status,
    git::log,
    git::changes,
    look::count,
    look::define,
    rank::rank,
    look::search,
    look::find,
    look::list,
    look::show,
    command::which,
    greet,
];

impl Goal {
    /// What a request is taken for, whatever else it says.
    pub(super) fn recognise(reading: &Reading) -> Self {
        RULES.iter().find_map(|rule| rule(reading)).unwrap_or(Self::Say(Phrase::Unclear))
    }

    /// What a request wants, if all its words are accounted for.
    pub(super) fn of(reading: &Reading) -> Self {
        let goal = Self::recognise(reading);
        match (goal.unaccounted(reading), goal.ability()) {
            (Some(word), Some(ability)) => Self::Unaccounted { word, example: ability.example },
            _ => goal,
        }
    }

    /// Whether it is known what to do.
    pub(super) fn is_understood(&self) -> bool {
        !matches!(self, Self::Say(_) | Self::Unaccounted { .. })
    }

    /// Whether reaching it changes or runs something.
    pub(super) fn acts(&self) -> bool {
        self.is_understood() && self.ability().is_none() || matches!(self, Self::Test { .. })
    }

    /// Where it looks, if that can be said.
    pub(super) fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Self::Search { scope, .. }
            | Self::FindFiles { scope, .. }
            | Self::Rank(Rank { scope, .. })
            | Self::CountLines(scope)
            | Self::CountFiles(scope) => Some(scope),
            _ => None,
        }
    }
}

/// `don't delete a.txt`: what is to be left alone, and nothing else.
fn refrain(reading: &Reading) -> Option<Goal> {
    let changes =
        [Word::Delete, Word::Rename, Word::Copy, Word::Replace, Word::Append, Word::Create, Word::Change];
    let looks = [Word::Show, Word::Find, Word::Search, Word::Count, Word::List];
    let spares = |words: &[Word], others: &[Word]| {
        let spared = reading.begins_with(Word::Not, words) && reading.has_any(words);
        spared && !reading.has_any(&looks) && !reading.has_any(others)
    };
    let nothing_else = reading.pieces.is_empty();
    if nothing_else && reading.changes_nothing || spares(&changes, &[Word::Run]) {
        let name = reading.names().first().map(|name| (*name).to_owned());
        Some(Goal::LeaveAlone { name })
    } else if nothing_else && reading.runs_nothing || spares(&[Word::Run], &changes) {
        Some(Goal::RunNothing)
    } else {
        None
    }
}

fn layout(reading: &Reading) -> Option<Goal> {
    if reading.has(Word::About) && reading.has(Word::Project) {
        return Some(Goal::About);
    }
    let looks = reading.has_any(&[Word::List, Word::Show, Word::Size]);
    let wanted = reading.has(Word::Layout) || (looks && reading.has(Word::Project));
    let other =
        [Word::Think, Word::Why, Word::File, Word::Count, Word::Test, Word::Commit, Word::Status, Word::Who];
    let names = !reading.names().is_empty() || !reading.terms().is_empty();
    (wanted && !names && !reading.has_any(&other)).then_some(Goal::Layout)
}

/// What only a model could do, unless the request looks for something first.
fn judgement(reading: &Reading) -> Option<Goal> {
    let looks = [Word::Show, Word::Find, Word::Search, Word::Count, Word::List];
    let thinks = reading.begins_with(Word::Think, &looks)
        || reading.begins_with(Word::Create, &looks) && reading.has(Word::Code)
        || reading.has_any(&[Word::Why, Word::Explain]);
    thinks.then_some(Goal::Say(Phrase::NeedsModel))
}

fn compare(reading: &Reading) -> Option<Goal> {
    let [one, two] = reading.names()[..] else { return None };
    reading.has(Word::Compare).then(|| Goal::Compare { one: one.to_owned(), two: two.to_owned() })
}

fn greet(reading: &Reading) -> Option<Goal> {
    reading.has(Word::Greet).then_some(Goal::Greet)
}
