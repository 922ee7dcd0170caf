//! Keywords that apply other schemas to a value: `not`, `anyOf`, `oneOf`, `allOf`, `if`.

use std::mem;

use serde_json::{Map, Value};

use super::{CheckProblems, SchemaCheck, TooComplex, ValueAt, list};

/// Result of validating a value against a schema.
#[derive(Debug)]
enum SchemaFit {
    Yes,
    /// No problem was found, but not everything could be checked.
    Maybe,
    No(CheckProblems),
}

/// Number of items that certainly match, and of those that may.
#[derive(Default)]
pub(super) struct FitCount {
    pub(super) sure: u64,
    pub(super) unsure: u64,
}

impl<'a> SchemaCheck<'a> {
    pub(super) fn unions(&mut self, schema: &'a Map<String, Value>, at: ValueAt) -> Result<(), TooComplex> {
        if let Some(banned) = schema.get("not")
            && let SchemaFit::Yes = self.unseen(|check| check.fit(banned, at))?
        {
            self.problem(at.path, format_args!("must not match the schema in `not`"))?;
        }
        if let Some(forms) = list(schema, "anyOf") {
            self.some(forms, usize::MAX, at)?;
        }
        if let Some(forms) = list(schema, "oneOf") {
            self.some(forms, 1, at)?;
        }
        for part in list(schema, "allOf").into_iter().flatten() {
            self.any(part, at.again())?;
        }
        if let Some(condition) = schema.get("if") {
            let branch = match self.fit(condition, at)? {
                SchemaFit::Yes => schema.get("then"),
                SchemaFit::No(_) => schema.get("else"),
                SchemaFit::Maybe => {
                    // Either of them may have evaluated anything.
                    self.see_all();
                    None
                }
            };
            branch.map_or(Ok(()), |branch| self.any(branch, at.again()))?;
        }
        Ok(())
    }

    /// Adds a problem unless the value matches one of the forms, and at most `most` of them with
    /// certainty.
    fn some(&mut self, forms: &'a [Value], most: usize, at: ValueAt) -> Result<(), TooComplex> {
        let (mut fitting, mut may_fit, mut nearest) = (0, false, None::<CheckProblems>);
        for form in forms {
            match self.fit(form, at)? {
                SchemaFit::Yes => fitting += 1,
                SchemaFit::Maybe => may_fit = true,
                SchemaFit::No(problems) => {
                    let is_nearer = nearest.as_ref().is_none_or(|nearest| problems.count() < nearest.count());
                    nearest = if is_nearer { Some(problems) } else { nearest };
                }
            }
            // One match is enough, unless the members that the others evaluate matter.
            if fitting > most || (fitting == 1 && most > 1 && self.seen.is_none()) {
                break;
            }
        }
        if fitting > most {
            self.problem(at.path, format_args!("matches more than one schema in `oneOf`"))?;
        } else if fitting == 0 && !may_fit {
            // Report a problem inside a form. A wrong type of the value itself is obvious.
            let inside = format!("`{}` must be ", at.path);
            let nearest =
                nearest.unwrap_or_default().told.into_iter().find(|problem| !problem.starts_with(&inside));
            let nearest =
                nearest.map(|problem| format!("; in the closest one, {problem}")).unwrap_or_default();
            self.problem(at.path, format_args!("matches none of the allowed forms{nearest}"))?;
        }
        Ok(())
    }

    /// Counts the items that match a schema.
    pub(super) fn count(
        &mut self,
        schema: &'a Value,
        items: &[Value],
        list: ValueAt,
    ) -> Result<FitCount, TooComplex> {
        let mut count = FitCount::default();
        for (place, item) in items.iter().enumerate() {
            match self.unseen(|check| check.fit(schema, list.inner(item, "")))? {
                SchemaFit::Yes => count.sure += 1,
                SchemaFit::Maybe => count.unsure += 1,
                SchemaFit::No(_) => continue,
            }
            self.see(place);
        }
        Ok(count)
    }

    fn fit(&mut self, schema: &'a Value, at: ValueAt) -> Result<SchemaFit, TooComplex> {
        let problems = mem::take(&mut self.problems);
        let was_unsure = mem::take(&mut self.is_unsure);
        let seen = self.seen.clone();
        self.any(schema, at.again())?;
        let found = mem::replace(&mut self.problems, problems);
        let fit = match self.is_unsure {
            _ if found.count() > 0 => {
                self.seen = seen;
                SchemaFit::No(found)
            }
            true => SchemaFit::Maybe,
            false => SchemaFit::Yes,
        };
        self.is_unsure |= was_unsure;
        Ok(fit)
    }
}
