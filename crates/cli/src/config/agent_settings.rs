//! The settings of an agent, in the groups that its builder takes.

use std::{num::NonZeroU64, path::Path, time::Duration};

use windlass::{
    Budget, ContextSettings, Family, ModelTable, ReviewSettings, StorageSettings, TurnLimits, Verdicts,
    host::Machine, instructions::DocumentSettings,
};

use super::{ShowVerdict, VerdictJudge, WindlassConfig};

impl WindlassConfig {
    /// Returns the traits of models, with those that the configuration adds.
    pub(crate) fn model_table(&self) -> ModelTable {
        ModelTable::default().with(self.models.clone())
    }

    /// Returns the traits of a model.
    pub(crate) fn family(&self, model: &str) -> Family {
        self.model_table().family(model)
    }

    /// Returns the limits of a turn.
    pub(crate) fn turn_limits(&self) -> TurnLimits {
        TurnLimits {
            time: self.turn_time_limit_sec.map(seconds),
            tokens: self.turn_token_limit.map(NonZeroU64::get),
        }
    }

    /// Returns the use of the context window of a model, without the instructions that are in a
    /// file.
    pub(crate) fn context_settings(&self, family: &Family) -> ContextSettings {
        let budgets = self.tool_output_token_limits.iter();
        ContextSettings {
            instructions: None,
            developer_instructions: self.developer_instructions.clone(),
            opening_messages: Vec::new(),
            window: Some(self.model_context_window.unwrap_or(family.context_window)),
            compact_at: self.compact_at,
            tool_percent: self.tool_context_percent,
            parallel_calls: self.parallel_tool_calls,
            output_budget: self.tool_output_token_limit.map(budget),
            tool_output_budgets: budgets.map(|(tool, tokens)| (tool.clone(), budget(*tokens))).collect(),
        }
    }

    /// Returns the choice of documents of a project.
    pub(crate) fn document_settings(&self) -> DocumentSettings {
        DocumentSettings {
            max_bytes: self.project_doc_max_bytes,
            fallback_names: self.project_doc_fallback_filenames.clone(),
        }
    }

    /// Returns the records that are kept below a home directory.
    pub(crate) fn storage_settings(&self, home: &Path) -> StorageSettings {
        StorageSettings {
            home: home.to_owned(),
            keep: self.history.into(),
            durability: self.durability.into(),
            undo_commands: self.undo.limits(),
        }
    }

    /// Returns the judgement of calls.
    pub(crate) fn review_settings(&self) -> ReviewSettings {
        ReviewSettings {
            verdicts: self.show_verdict.into(),
            model_patience: match self.judge {
                VerdictJudge::Facts => None,
                VerdictJudge::Model => Some(seconds(self.judge_time_limit_sec)),
            },
        }
    }

    /// Sets the limits of all commands of a run together.
    pub(crate) fn limit_commands(&self, mut machine: Machine) -> Machine {
        if let Some(limit) = self.command_time_limit_sec {
            machine = machine.with_command_time(seconds(limit));
        }
        if let Some(limit) = self.command_cpu_limit_sec {
            machine = machine.with_command_cpu(seconds(limit));
        }
        machine
    }
}

impl From<ShowVerdict> for Verdicts {
    fn from(shown: ShowVerdict) -> Self {
        match shown {
            ShowVerdict::Never => Self::Never,
            ShowVerdict::OnFailure => Self::OnFailure,
            ShowVerdict::Always => Self::Always,
        }
    }
}

/// Returns a number of seconds as a duration.
pub(crate) fn seconds(number: NonZeroU64) -> Duration {
    Duration::from_secs(number.get())
}

fn budget(tokens: NonZeroU64) -> Budget {
    Budget::Tokens(usize::try_from(tokens.get()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use windlass::{CompactAt, host::SnapshotLimits, record::DurabilityMode};

    use super::*;

    fn config(toml: &str) -> WindlassConfig {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn limits_are_in_the_units_of_their_keys_and_unset_ones_are_none() {
        let limits = config("turn_time_limit_sec = 90\nturn_token_limit = 5000").turn_limits();
        assert_eq!(limits, TurnLimits { time: Some(Duration::from_secs(90)), tokens: Some(5000) });
        assert_eq!(WindlassConfig::default().turn_limits(), TurnLimits::default());
    }

    #[test]
    fn outputs_have_the_budget_of_their_tool_and_the_window_that_of_the_model() {
        let family = Family::of("gpt-5");
        let set = config(
            "tool_output_token_limit = 70\ntool_context_percent = 3\n[tool_output_token_limits]\nsh = 9",
        );
        let expected = ContextSettings {
            window: Some(family.context_window),
            tool_percent: 3,
            output_budget: Some(Budget::Tokens(70)),
            tool_output_budgets: [("sh".to_owned(), Budget::Tokens(9))].into(),
            ..ContextSettings::default()
        };
        assert_eq!(set.context_settings(&family), expected);
    }

    #[test]
    fn a_conversation_is_made_shorter_at_its_share_or_never() {
        let family = Family::of("gpt-5");
        let compact_at = |toml: &str| config(toml).context_settings(&family).compact_at;
        assert_eq!(compact_at("compact_at = 60"), Some(CompactAt::Percent(60)));
        assert_eq!(compact_at("compact_at = 0"), Some(CompactAt::Off));
        assert_eq!(compact_at(""), None);
        let of_model = config("[models.\"gpt-5*\"]\ncompact_at = 70").family("gpt-5.1").compact_at;
        assert_eq!(of_model, CompactAt::Percent(70));
        assert!(toml::from_str::<WindlassConfig>("compact_at = 96").is_err());
    }

    #[test]
    fn the_model_judges_only_where_it_is_chosen() {
        let by_model = config("judge = \"model\"\njudge_time_limit_sec = 7\nshow_verdict = \"always\"");
        let expected =
            ReviewSettings { verdicts: Verdicts::Always, model_patience: Some(Duration::from_secs(7)) };
        assert_eq!(by_model.review_settings(), expected);
        assert_eq!(config("judge_time_limit_sec = 7").review_settings(), ReviewSettings::default());
    }

    #[test]
    fn changes_of_commands_are_recorded_unless_that_is_switched_off() {
        let home = Path::new("/h");
        let off = config("durability = \"never\"\n[undo]\ncommands = false").storage_settings(home);
        let expected = StorageSettings { durability: DurabilityMode::Never, ..StorageSettings::new(home) };
        assert_eq!(off, expected);
        let undo_commands = Some(SnapshotLimits::default());
        let on = WindlassConfig::default().storage_settings(home);
        assert_eq!(on, StorageSettings { undo_commands, ..StorageSettings::new(home) });
    }
}
