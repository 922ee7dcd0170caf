//! Redacts secrets in what a tool gives back beside its text: its report and its own insight.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use windlass_contract::{
    insight::Insight,
    report::{SearchMatch, ToolReport},
};

use crate::Shaper;

impl Shaper {
    /// Redacts the report of a tool. Returns `None` for one that cannot be redacted.
    pub(crate) fn clean_report(&self, report: ToolReport) -> Option<ToolReport> {
        // Texts are redacted in the order they are written: redacted values are numbered.
        Some(match report {
            ToolReport::Tests(tests) => ToolReport::Tests(Box::new(self.clean_fields(*tests)?)),
            ToolReport::Search(mut search) => {
                search.matches.iter_mut().for_each(|each| self.clean_match(each));
                ToolReport::Search(search)
            }
            ToolReport::Streams(mut streams) => {
                self.clean_in_place(&mut streams.stderr);
                self.clean_in_place(&mut streams.stdout);
                ToolReport::Streams(streams)
            }
            ToolReport::Json(value) => ToolReport::Json(self.clean_data(value)),
        })
    }

    fn clean_match(&self, found: &mut SearchMatch) {
        match found {
            SearchMatch::File { path } | SearchMatch::Count { path, .. } => self.clean_in_place(path),
            SearchMatch::Line { path, text, .. } => {
                self.clean_in_place(path);
                self.clean_in_place(text);
            }
        }
    }

    /// Redacts the insight that a tool supplied itself.
    pub(crate) fn clean_insight(&self, insight: Insight) -> Option<Insight> {
        self.clean_fields(insight)
    }

    /// Redacts all strings of a type with too many of them to name.
    fn clean_fields<T: Serialize + DeserializeOwned>(&self, fields: T) -> Option<T> {
        let data = serde_json::to_value(fields).ok()?;
        serde_json::from_value(self.clean_data(data)).ok()
    }

    /// Redacts all strings in data. Recursion is bounded, because the parser rejects deeper data.
    fn clean_data(&self, data: Value) -> Value {
        match data {
            Value::String(text) => Value::String(self.clean_text(text)),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.clean_data(item)).collect())
            }
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, self.clean_data(value)));
                Value::Object(fields.collect())
            }
            other => other,
        }
    }

    fn clean_in_place(&self, text: &mut String) {
        *text = self.clean_text(std::mem::take(text));
    }
}
