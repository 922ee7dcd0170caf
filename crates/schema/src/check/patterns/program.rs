//! Patterns as programs, and texts searched by them, step by step.

use std::{ops::Range, rc::Rc};

use super::{
    set::{Set, is_letter},
    syntax::Node,
};

/// How long a program may be. What is to be there so many times is in it so many times.
const MAX_LEN: usize = 10_000;
/// How many steps a search may take: some milliseconds.
const MAX_STEPS: usize = 1_000_000;
/// For how many pairs of a step and a place in the text it is noted what came of them.
const MAX_CELLS: usize = 1 << 23;

enum Step {
    /// One character, after or before the place.
    One(Rc<Set>, Way),
    Start,
    End,
    Edge(bool),
    /// Goes on here, or else there.
    Fork(usize, usize),
    Jump(usize),
    /// Looks at what comes next in the program, up to its end, and goes on at the end of that.
    Look {
        wanted: bool,
        end: usize,
    },
    /// Keeps the place.
    Keep(usize),
    /// Forgets places.
    Forget(Range<usize>),
    /// Goes no further if the place is the one that was kept: a round that has found nothing.
    Moved(usize),
    /// What was found between two kept places.
    Again(Vec<usize>, Way),
    Found,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    On,
    Back,
}

pub(super) struct Program {
    steps: Vec<Step>,
    /// How many places may be kept. None are if nothing goes back to them.
    places: usize,
}

/// What came of a search, and what it took.
pub(super) struct Search {
    pub(super) found: Option<bool>,
    pub(super) steps: usize,
    pub(super) bytes: usize,
}

impl Program {
    /// None if it would be too long.
    pub(super) fn new(node: &Node) -> Option<Self> {
        let places = if goes_back(node) { 2 * groups(node) } else { 0 };
        let mut writer = Writer { steps: Vec::new(), places, keeps: places > 0, rounds: 0 };
        writer.write(node, Way::On)?;
        writer.push(Step::Found)?;
        Some(Self { steps: writer.steps, places: writer.places })
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it is anywhere in the text.
    pub(super) fn search(&self, text: &str) -> Search {
        let width = text.len() + 1;
        // What was found before may be asked for again, and makes two ways to a place differ.
        let cells = if self.places > 0 { 0 } else { self.steps.len() * width };
        if cells > MAX_CELLS {
            return Search { found: None, steps: 0, bytes: 0 };
        }
        let mut run = Run {
            steps: &self.steps,
            text,
            kept: vec![None; self.places],
            states: vec![0; cells.div_ceil(CELLS)],
            tried: Vec::new(),
            left: MAX_STEPS,
        };
        let is_fixed = matches!(self.steps.first(), Some(Step::Start));
        let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let mut found = Some(false);
        for at in starts.take(if is_fixed { 1 } else { usize::MAX }) {
            found = run.from(0, at);
            if found != Some(false) {
                break;
            }
        }
        Search { found, steps: MAX_STEPS - run.left, bytes: cells / 4 }
    }
}

fn goes_back(node: &Node) -> bool {
    match node {
        Node::Again(_) => true,
        Node::All(nodes) | Node::Either(nodes) => nodes.iter().any(goes_back),
        Node::Group(_, inside) | Node::Look { inside, .. } | Node::Repeat { inside, .. } => goes_back(inside),
        Node::One(_) | Node::Start | Node::End | Node::Edge(_) => false,
    }
}

fn groups(node: &Node) -> usize {
    match node {
        Node::All(nodes) | Node::Either(nodes) => nodes.iter().map(groups).max().unwrap_or(0),
        Node::Group(number, inside) => groups(inside).max(number + 1),
        Node::Look { inside, .. } | Node::Repeat { inside, .. } => groups(inside),
        Node::One(_) | Node::Start | Node::End | Node::Edge(_) | Node::Again(_) => 0,
    }
}

struct Writer {
    steps: Vec<Step>,
    places: usize,
    keeps: bool,
    /// Rounds of what is repeated, which count even if there is nothing in them.
    rounds: usize,
}

impl Writer {
    fn push(&mut self, step: Step) -> Option<usize> {
        self.steps.push(step);
        (self.steps.len() + self.rounds <= MAX_LEN).then(|| self.steps.len() - 1)
    }

    fn write(&mut self, node: &Node, way: Way) -> Option<()> {
        match node {
            Node::One(set) => drop(self.push(Step::One(Rc::clone(set), way))?),
            Node::Start => drop(self.push(Step::Start)?),
            Node::End => drop(self.push(Step::End)?),
            Node::Edge(wanted) => drop(self.push(Step::Edge(*wanted))?),
            Node::Again(groups) => drop(self.push(Step::Again(groups.clone(), way))?),
            Node::All(nodes) if way == Way::On => nodes.iter().try_for_each(|node| self.write(node, way))?,
            Node::All(nodes) => nodes.iter().rev().try_for_each(|node| self.write(node, way))?,
            Node::Either(forms) => self.either(forms, way)?,
            Node::Group(number, inside) => {
                let (first, last) = if way == Way::On { (0, 1) } else { (1, 0) };
                self.keep(2 * number + first)?;
                self.write(inside, way)?;
                self.keep(2 * number + last)?;
            }
            Node::Look { behind, wanted, inside } => {
                let look = self.push(Step::Look { wanted: *wanted, end: 0 })?;
                self.write(inside, if *behind { Way::Back } else { Way::On })?;
                let end = self.push(Step::Found)? + 1;
                self.steps[look] = Step::Look { wanted: *wanted, end };
            }
            Node::Repeat { inside, least, most, greedy, groups } => {
                let round = Round { inside, greedy: *greedy, groups: 2 * groups.start..2 * groups.end };
                for _ in 0..*least {
                    self.round(&round, way)?;
                }
                match most {
                    Some(most) => self.at_most(&round, most - least, way)?,
                    None => self.forever(&round, way)?,
                }
            }
        }
        Some(())
    }

    fn keep(&mut self, place: usize) -> Option<()> {
        if self.keeps {
            self.push(Step::Keep(place))?;
        }
        Some(())
    }

    fn either(&mut self, forms: &[Node], way: Way) -> Option<()> {
        let Some((last, others)) = forms.split_last() else { return Some(()) };
        let mut ends = Vec::new();
        for form in others {
            let fork = self.push(Step::Found)?;
            self.write(form, way)?;
            ends.push(self.push(Step::Found)?);
            self.steps[fork] = Step::Fork(fork + 1, self.steps.len());
        }
        self.write(last, way)?;
        let end = self.steps.len();
        for at in ends {
            self.steps[at] = Step::Jump(end);
        }
        Some(())
    }

    fn round(&mut self, round: &Round<'_>, way: Way) -> Option<()> {
        self.rounds += 1;
        if self.rounds > MAX_LEN {
            return None;
        }
        if self.keeps && !round.groups.is_empty() {
            self.push(Step::Forget(round.groups.clone()))?;
        }
        self.write(round.inside, way)
    }

    fn at_most(&mut self, round: &Round<'_>, times: usize, way: Way) -> Option<()> {
        let mut forks = Vec::new();
        for _ in 0..times {
            forks.push(self.push(Step::Found)?);
            self.round(round, way)?;
        }
        let end = self.steps.len();
        for at in forks {
            self.steps[at] = round.fork(at + 1, end);
        }
        Some(())
    }

    fn forever(&mut self, round: &Round<'_>, way: Way) -> Option<()> {
        let fork = self.push(Step::Found)?;
        let place = self.places;
        self.places += usize::from(self.keeps);
        self.keep(place)?;
        self.round(round, way)?;
        if self.keeps {
            self.push(Step::Moved(place))?;
        }
        let end = self.push(Step::Jump(fork))? + 1;
        self.steps[fork] = round.fork(fork + 1, end);
        Some(())
    }
}

/// What is repeated.
struct Round<'a> {
    inside: &'a Node,
    greedy: bool,
    groups: Range<usize>,
}

impl Round<'_> {
    fn fork(&self, again: usize, end: usize) -> Step {
        if self.greedy { Step::Fork(again, end) } else { Step::Fork(end, again) }
    }
}

struct Run<'a> {
    steps: &'a [Step],
    text: &'a str,
    kept: Vec<Option<usize>>,
    /// Two bits for each pair of a step and a place.
    states: Vec<u64>,
    /// The pairs that are being tried, in this order.
    tried: Vec<usize>,
    left: usize,
}

/// How many pairs have their state in one number.
const CELLS: usize = 32;

/// What is known of a step at a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New = 0,
    /// There is no way on.
    Dead = 1,
    /// There is a way to the end of the look that it is part of.
    Live = 2,
    /// What comes after it is under way.
    Tried = 3,
}

/// What to do when there is no way on.
enum Other {
    /// Goes on at a step and a place. What was tried since has failed.
    Try(usize, usize, usize),
    Put(usize, Option<usize>),
}

impl Run<'_> {
    /// Whether there is a way from a step and a place to the end. None if it takes too long to find.
    fn from(&mut self, step: usize, at: usize) -> Option<bool> {
        let before = self.tried.len();
        let mut others = vec![Other::Try(step, at, before)];
        // Whether a round of nothing came back to where it began. What failed for that may find a way from there later.
        let mut circled = false;
        while let Some(other) = others.pop() {
            let (mut step, mut at) = match other {
                Other::Try(step, at, since) => {
                    if !circled {
                        self.settle(since, State::Dead);
                    }
                    (step, at)
                }
                Other::Put(place, was) => {
                    self.kept[place] = was;
                    continue;
                }
            };
            loop {
                match self.enter(step, at) {
                    State::New => {}
                    State::Dead => break,
                    State::Live => {
                        self.settle(before, if circled { State::New } else { State::Live });
                        return Some(true);
                    }
                    State::Tried => {
                        circled = true;
                        break;
                    }
                }
                self.left = self.left.checked_sub(1 + self.extra(step))?;
                let next = match &self.steps[step] {
                    Step::Found => {
                        self.settle(before, if circled { State::New } else { State::Live });
                        return Some(true);
                    }
                    Step::Jump(to) => Some((*to, at)),
                    Step::Fork(here, there) => {
                        others.push(Other::Try(*there, at, self.tried.len()));
                        Some((*here, at))
                    }
                    Step::Keep(place) => {
                        self.put(*place, Some(at), &mut others);
                        Some((step + 1, at))
                    }
                    Step::Forget(places) => {
                        places.clone().for_each(|place| self.put(place, None, &mut others));
                        Some((step + 1, at))
                    }
                    Step::Look { wanted, end } => {
                        self.look(step + 1, at, *wanted, &mut others)?.then_some((*end, at))
                    }
                    Step::One(..)
                    | Step::Start
                    | Step::End
                    | Step::Edge(_)
                    | Step::Moved(_)
                    | Step::Again(..) => self.pass(&self.steps[step], at).map(|at| (step + 1, at)),
                };
                let Some(next) = next else { break };
                (step, at) = next;
            }
        }
        self.settle(before, State::Dead);
        Some(false)
    }

    /// What a step takes more than others.
    fn extra(&self, step: usize) -> usize {
        match &self.steps[step] {
            Step::Forget(places) => places.len(),
            Step::Look { .. } => self.kept.len(),
            Step::Again(..) => self.text.len() / 64,
            _ => 0,
        }
    }

    /// Where a step that needs no choice leads.
    fn pass(&self, step: &Step, at: usize) -> Option<usize> {
        let (before, after) = self.text.split_at(at);
        let holds = match step {
            Step::One(set, Way::On) => {
                return after.chars().next().filter(|c| set.has(*c)).map(|c| at + c.len_utf8());
            }
            Step::One(set, Way::Back) => {
                return before.chars().next_back().filter(|c| set.has(*c)).map(|c| at - c.len_utf8());
            }
            Step::Again(groups, way) => {
                let found = |group: &usize| self.text.get(self.kept[2 * group]?..self.kept[2 * group + 1]?);
                // A group that has found nothing is nothing to go back to, and that is everywhere.
                let found = groups.iter().find_map(found).unwrap_or_default();
                return match way {
                    Way::On => after.starts_with(found).then_some(at + found.len()),
                    Way::Back => before.ends_with(found).then(|| at - found.len()),
                };
            }
            Step::Start => before.is_empty(),
            Step::End => after.is_empty(),
            Step::Edge(wanted) => {
                let is_edge = before.chars().next_back().is_some_and(is_letter)
                    != after.chars().next().is_some_and(is_letter);
                is_edge == *wanted
            }
            Step::Moved(place) => self.kept[*place] != Some(at),
            _ => true,
        };
        holds.then_some(at)
    }

    /// Whether a look finds what is wanted. What it kept stays kept, if it was to be there.
    fn look(&mut self, step: usize, at: usize, wanted: bool, others: &mut Vec<Other>) -> Option<bool> {
        let kept = self.kept.clone();
        let found = self.from(step, at)?;
        if found && wanted {
            let was = kept.into_iter().enumerate().filter(|(place, was)| self.kept[*place] != *was);
            others.extend(was.map(|(place, was)| Other::Put(place, was)));
        } else {
            self.kept = kept;
        }
        Some(found == wanted)
    }

    fn put(&mut self, place: usize, at: Option<usize>, others: &mut Vec<Other>) {
        others.push(Other::Put(place, self.kept[place]));
        self.kept[place] = at;
    }

    /// What is known of a step at a place; if nothing is, it is being tried from now on.
    fn enter(&mut self, step: usize, at: usize) -> State {
        // Where nothing is noted, everything is new.
        let cell = step * (self.text.len() + 1) + at;
        let Some(states) = self.states.get(cell / CELLS) else { return State::New };
        match (states >> (2 * (cell % CELLS))) & 3 {
            0 => {
                self.set(cell, State::Tried);
                self.tried.push(cell);
                State::New
            }
            1 => State::Dead,
            2 => State::Live,
            _ => State::Tried,
        }
    }

    /// Notes what came of all that was tried since.
    fn settle(&mut self, since: usize, state: State) {
        while self.tried.len() > since
            && let Some(cell) = self.tried.pop()
        {
            self.set(cell, state);
        }
    }

    fn set(&mut self, cell: usize, state: State) {
        let shift = 2 * (cell % CELLS);
        let states = &mut self.states[cell / CELLS];
        *states = (*states & !(3 << shift)) | ((state as u64) << shift);
    }
}
