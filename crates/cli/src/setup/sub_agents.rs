//! The agents that an agent may start, from the configuration.

use std::num::NonZeroU64;

use windlass::{AgentRole, SubAgentSettings, TurnLimits, built_in_roles};

use super::ProgramSetup;
use crate::{
    config::{ConfiguredRole, WindlassConfig, seconds},
    problem::CliProblem,
};

impl ProgramSetup {
    /// Returns the roles and limits of agents that an agent may start, if it may start any.
    pub(super) fn sub_agents(&self) -> Result<Option<SubAgentSettings>, CliProblem> {
        let config = self.config();
        if !config.sub_agents.enabled.unwrap_or(!config.agents.is_empty()) {
            return Ok(None);
        }
        let mut roles = built_in_roles();
        for (name, configured) in &config.agents {
            let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(CliProblem::usage(format!(
                    "`agents.{}`: the name of a role has letters, digits, `-` and `_` only",
                    name.escape_debug()
                )));
            }
            roles.insert(name.clone(), self.role(configured));
        }
        Ok(Some(SubAgentSettings {
            roles,
            max_agents: config.sub_agents.max_agents.get(),
            max_depth: config.sub_agents.max_depth.get(),
        }))
    }

    fn role(&self, role: &ConfiguredRole) -> AgentRole {
        let has_model = role.model.is_some() || role.model_provider.is_some();
        AgentRole {
            description: role.description.clone(),
            // An unusable model is an error of the call that wants it, not of the program.
            model: has_model.then(|| self.with_model(role).client().map_err(|problem| problem.message)),
            instructions: role.instructions.clone(),
            sandbox: role.sandbox_mode,
            tools: Some(role.tools.clone()).filter(|tools| !tools.is_empty()),
            limits: TurnLimits {
                time: role.turn_time_limit_sec.map(seconds),
                tokens: role.turn_token_limit.map(NonZeroU64::get),
            },
        }
    }

    /// Returns a setup with the model of a role.
    fn with_model(&self, role: &ConfiguredRole) -> Self {
        let own = self.config();
        // The model of another provider is not known there.
        let usual = own.model.clone().filter(|_| role.model_provider.is_none());
        let config = WindlassConfig {
            model: role.model.clone().or(usual),
            model_provider: role.model_provider.clone().or_else(|| own.model_provider.clone()),
            ..own.clone()
        };
        let loaded = self.loaded.with_config(config);
        let (home, cwd) = (self.home.clone(), self.cwd.clone());
        Self {
            loaded,
            home,
            cwd,
            usual_provider: self.usual_provider,
            quota: self.quota,
            budget: self.budget.clone(),
        }
    }
}
