//! Keywords that put other schemas to a value: `not`, `anyOf`, `oneOf`, `allOf`, `if`.

use std::mem;

use serde_json::{Map, Value};

use super::{At, Check, Problems, TooComplex, list};

/// What came of putting a schema to a value.
#[derive(Debug)]
enum Fit {
    Yes,
    /// Nothing speaks against it, but not everything could be checked.
    Maybe,
    No(Problems),
}

/// How many items fit for sure, and how many of the others may.
#[derive(Default)]
pub(super) struct Count {
    pub(super) sure: u64,
    pub(super) unsure: u64,
}

impl<'a> Check<'a> {
    pub(super) fn unions(&mut self, schema: &'a Map<String, Value>, at: At) -> Result<(), TooComplex> {
        if let Some(banned) = schema.get("not")
            && let Fit::Yes = self.unseen(|check| check.fit(banned, at))?
        {
            self.problem(at.path, format_args!("has a form it must not have"))?;
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
                Fit::Yes => schema.get("then"),
                Fit::No(_) => schema.get("else"),
                Fit::Maybe => {
                    // One of them may have spoken of anything.
                    self.see_all();
                    None
                }
            };
            branch.map_or(Ok(()), |branch| self.any(branch, at.again()))?;
        }
        Ok(())
    }

    /// Notes a problem unless the value fits one of the forms, and no more than so many for sure.
    fn some(&mut self, forms: &'a [Value], most: usize, at: At) -> Result<(), TooComplex> {
        let (mut fitting, mut may_fit, mut nearest) = (0, false, None::<Problems>);
        for form in forms {
            match self.fit(form, at)? {
                Fit::Yes => fitting += 1,
                Fit::Maybe => may_fit = true,
                Fit::No(problems) => {
                    let is_nearer = nearest.as_ref().is_none_or(|nearest| problems.count() < nearest.count());
                    nearest = if is_nearer { Some(problems) } else { nearest };
                }
            }
            // One that fits is enough, unless it matters what the others have seen.
            if fitting > most || (fitting == 1 && most > 1 && self.seen.is_none()) {
                break;
            }
        }
        if fitting > most {
            self.problem(at.path, format_args!("fits more than one of the forms of which it may have one"))?;
        } else if fitting == 0 && !may_fit {
            // What is wrong inside of a form is told; that it is of another type goes without saying.
            let inside = format!("`{}` must be ", at.path);
            let nearest =
                nearest.unwrap_or_default().told.into_iter().find(|problem| !problem.starts_with(&inside));
            let nearest = nearest.map(|problem| format!("; in the nearest, {problem}")).unwrap_or_default();
            self.problem(at.path, format_args!("fits none of the forms it may have{nearest}"))?;
        }
        Ok(())
    }

    /// How many items fit a schema.
    pub(super) fn count(
        &mut self,
        schema: &'a Value,
        items: &[Value],
        list: At,
    ) -> Result<Count, TooComplex> {
        let mut count = Count::default();
        for (place, item) in items.iter().enumerate() {
            match self.unseen(|check| check.fit(schema, list.inner(item, "")))? {
                Fit::Yes => count.sure += 1,
                Fit::Maybe => count.unsure += 1,
                Fit::No(_) => continue,
            }
            self.see(place);
        }
        Ok(count)
    }

    fn fit(&mut self, schema: &'a Value, at: At) -> Result<Fit, TooComplex> {
        let problems = mem::take(&mut self.problems);
        let was_unsure = mem::take(&mut self.is_unsure);
        let seen = self.seen.clone();
        self.any(schema, at.again())?;
        let found = mem::replace(&mut self.problems, problems);
        let fit = match self.is_unsure {
            _ if found.count() > 0 => {
                self.seen = seen;
                Fit::No(found)
            }
            true => Fit::Maybe,
            false => Fit::Yes,
        };
        self.is_unsure |= was_unsure;
        Ok(fit)
    }
}
