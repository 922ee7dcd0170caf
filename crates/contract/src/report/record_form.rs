//! Serialized forms of process reports, in records and as JSON. Commands and sessions have one
//! each. They differ in the order of the fields and in those that are always present.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ProcessReport;
use crate::{
    Denial,
    grant::{Held, millis},
    host::{Exit, Whole},
};

/// A command that has ended.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ProcessReport")]
pub(crate) struct CommandForm {
    exit: Exit,
    #[serde(rename = "duration_ms", with = "millis")]
    duration: Duration,
    output_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    killed: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    denials: Vec<Denial>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    waits_for_input: bool,
    #[serde(skip)]
    running: Vec<String>,
    // It is in the receipt.
    #[serde(skip)]
    held: Option<Held>,
}

/// The same form for a boxed report.
pub(crate) mod boxed_command {
    use super::{CommandForm, Deserializer, ProcessReport, Serializer};

    pub(crate) fn serialize<S: Serializer>(report: &ProcessReport, to: S) -> Result<S::Ok, S::Error> {
        CommandForm::serialize(report, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<ProcessReport>, D::Error> {
        CommandForm::deserialize(from).map(Box::new)
    }
}

/// A session, which may still run.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ProcessReport<Option<Exit>>")]
pub(crate) struct SessionForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<Exit>,
    #[serde(default)]
    waits_for_input: bool,
    #[serde(rename = "duration_ms", with = "millis")]
    duration: Duration,
    output_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    killed: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    denials: Vec<Denial>,
    #[serde(skip)]
    running: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}
