//! Recognises the goal of a request: the first rule that matches decides.

use super::{
    parsed_request::{LineSelection, ParsedRequest, SearchScope},
    phrases::AnswerPhrase,
    words::WordClass,
};

mod change;
mod command;
mod git;
mod look;
mod rank;
mod vocabulary;

pub(super) use git::{CommitQuery, HistoryStart};
pub(super) use rank::{DEFAULT_RANKED_FILES, FileRanking, RankOrder};

/// The goal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlanGoal {
    Show {
        files: Vec<String>,
        part: LineSelection,
    },
    Define {
        name: String,
        show: bool,
    },
    FindFiles {
        scope: SearchScope,
        name: Option<String>,
    },
    Rank(FileRanking),
    Search {
        texts: Vec<String>,
        scope: SearchScope,
        want: SearchOutput,
        /// True for whole words only: a search for uses of `total` must not find `subtotal`.
        whole_word: bool,
    },
    List {
        directory: Option<String>,
    },
    Layout,
    /// The README of the project, and its layout.
    About,
    Run {
        command: String,
    },
    Test {
        filter: Option<String>,
        code: bool,
    },
    CountLines(SearchScope),
    CountFiles(SearchScope),
    Compare {
        one: String,
        two: String,
    },
    Status,
    Branches,
    Log(CommitQuery),
    CountCommits {
        path: Option<String>,
    },
    Diff {
        path: Option<String>,
    },
    ChangesSince(HistoryStart),
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
    /// Set the value of a key in a file.
    SetValue {
        file: Option<String>,
        key: String,
        value: String,
    },
    /// `don't delete a.txt`, without any other order.
    LeaveAlone {
        name: Option<String>,
    },
    /// `don't run the tests`, without any other order.
    RunNothing,
    Greet,
    /// The goal is impossible, or needs more information.
    Say(AnswerPhrase),
    /// A word could change the meaning of the request, so the nearest goal is not taken.
    Unaccounted {
        word: String,
        /// A request that is understood, in English and in Chinese.
        example: (&'static str, &'static str),
    },
}

/// The form in which matches are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchOutput {
    Places,
    Files,
    Count,
    Around(u64),
}

/// Recognises one kind of request.
type GoalRule = fn(&ParsedRequest) -> Option<PlanGoal>;

/// Narrow rules come first: those that change something, then those that need judgement, then those
/// that only read.
const RULES: [GoalRule; 29] = [
    refrain,
    change::delete_directory,
    change::delete,
    change::rename,
    change::copy,
    change::replace,
    change::append,
    change::make_directory,
    change::create,
    command::git_order,
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
    command::unspecified,
    greet,
];

impl PlanGoal {
    /// Recognises the goal of a request, without checking all its words.
    pub(super) fn recognise(request: &ParsedRequest) -> Self {
        RULES.iter().find_map(|rule| rule(request)).unwrap_or(Self::Say(AnswerPhrase::Unclear))
    }

    /// Recognises the goal of a request, if all its words are accounted for.
    pub(super) fn from_request(request: &ParsedRequest) -> Self {
        let goal = Self::recognise(request);
        match (goal.unaccounted(request), goal.vocabulary()) {
            (Some(word), Some(vocabulary)) => Self::Unaccounted { word, example: vocabulary.example },
            _ => goal,
        }
    }

    /// Returns true if the goal is known.
    pub(super) fn is_understood(&self) -> bool {
        !matches!(self, Self::Say(_) | Self::Unaccounted { .. })
    }

    /// Returns true if reaching the goal changes or runs something.
    pub(super) fn acts(&self) -> bool {
        self.is_understood() && self.vocabulary().is_none() || matches!(self, Self::Test { .. })
    }

    /// Returns the scope of the goal, if it has one.
    pub(super) fn scope_mut(&mut self) -> Option<&mut SearchScope> {
        match self {
            Self::Search { scope, .. }
            | Self::FindFiles { scope, .. }
            | Self::Rank(FileRanking { scope, .. })
            | Self::CountLines(scope)
            | Self::CountFiles(scope) => Some(scope),
            _ => None,
        }
    }
}

/// Recognises `don't delete a.txt` without any other order.
fn refrain(request: &ParsedRequest) -> Option<PlanGoal> {
    let changes = [
        WordClass::Delete,
        WordClass::Rename,
        WordClass::Copy,
        WordClass::Replace,
        WordClass::Append,
        WordClass::Create,
        WordClass::Change,
    ];
    let looks = [WordClass::Show, WordClass::Find, WordClass::Search, WordClass::Count, WordClass::List];
    let spares = |words: &[WordClass], others: &[WordClass]| {
        let spared = request.begins_with(WordClass::Not, words) && request.has_any(words);
        spared && !request.has_any(&looks) && !request.has_any(others)
    };
    let nothing_else = request.tokens.is_empty();
    if nothing_else && request.changes_nothing || spares(&changes, &[WordClass::Run]) {
        let name = request.names().first().map(|name| (*name).to_owned());
        Some(PlanGoal::LeaveAlone { name })
    } else if nothing_else && request.runs_nothing || spares(&[WordClass::Run], &changes) {
        Some(PlanGoal::RunNothing)
    } else {
        None
    }
}

fn layout(request: &ParsedRequest) -> Option<PlanGoal> {
    if request.has(WordClass::About) && request.has(WordClass::Project) {
        return Some(PlanGoal::About);
    }
    let looks = request.has_any(&[WordClass::List, WordClass::Show, WordClass::Size]);
    let wanted = request.has(WordClass::Layout) || (looks && request.has(WordClass::Project));
    let other = [
        WordClass::Think,
        WordClass::Why,
        WordClass::File,
        WordClass::Count,
        WordClass::Test,
        WordClass::Commit,
        WordClass::Status,
        WordClass::Who,
    ];
    let names = !request.names().is_empty() || !request.terms().is_empty();
    (wanted && !names && !request.has_any(&other)).then_some(PlanGoal::Layout)
}

/// Recognises requests that need a model, unless the request asks to find something first.
fn judgement(request: &ParsedRequest) -> Option<PlanGoal> {
    let looks = [WordClass::Show, WordClass::Find, WordClass::Search, WordClass::Count, WordClass::List];
    let thinks = request.begins_with(WordClass::Think, &looks)
        || request.begins_with(WordClass::Create, &looks) && request.has(WordClass::Code)
        || request.has_any(&[WordClass::Why, WordClass::Explain]);
    thinks.then_some(PlanGoal::Say(AnswerPhrase::NeedsModel))
}

fn compare(request: &ParsedRequest) -> Option<PlanGoal> {
    let [one, two] = request.names()[..] else { return None };
    request.has(WordClass::Compare).then(|| PlanGoal::Compare { one: one.to_owned(), two: two.to_owned() })
}

fn greet(request: &ParsedRequest) -> Option<PlanGoal> {
    request.has(WordClass::Greet).then_some(PlanGoal::Greet)
}
