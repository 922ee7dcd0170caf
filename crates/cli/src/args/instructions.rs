//! Options of the commands about instruction files: `instructions`, `skills`, `prompts`.

use clap::{Args, Subcommand};

/// Show what the model is told.
#[derive(Debug, Args)]
pub(crate) struct InstructionsOptions {
    /// Print the texts as they are sent, instead of their sources and sizes.
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List all skills, with the reasons for those that are not used.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one skill as the model gets it, also before it is trusted.
    Show {
        /// Name of the skill.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PromptsCommand {
    /// List all prompts, with the reasons for those that are not used.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the message that a prompt stands for, also before it is trusted.
    Show {
        /// Name of the prompt.
        name: String,
        /// Arguments of the prompt.
        arguments: Vec<String>,
    },
}
