//! The program as a user runs it: the real binary, real servers on loopback, real processes. One
//! file per subject.

// `cfg(test)` lets helpers unwrap as tests do.
#[cfg(test)]
mod answers;
#[cfg(test)]
mod apply_patch;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod arguments;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_models;
#[cfg(test)]
mod bad_servers;
#[cfg(test)]
mod call;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod choose;
#[cfg(test)]
mod completions;
#[cfg(test)]
mod config;
#[cfg(test)]
mod config_changes;
#[cfg(test)]
mod context;
#[cfg(test)]
mod denials;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod escape_rules;
#[cfg(test)]
mod events;
#[cfg(test)]
mod exec;
#[cfg(test)]
mod exec_terminal;
#[cfg(test)]
mod exit_codes;
#[cfg(test)]
mod files;
#[cfg(test)]
mod first_run;
#[cfg(test)]
mod help;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod ids;
#[cfg(test)]
mod instructions;
#[cfg(test)]
mod interactive;
mod interactive_turns;
#[cfg(test)]
mod interrupt;
mod judge;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kill_random;
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod login;
#[cfg(test)]
mod mcp_calls;
#[cfg(test)]
mod mcp_commands;
#[cfg(test)]
mod mcp_first_contact;
#[cfg(test)]
mod mcp_gateway;
#[cfg(test)]
mod mcp_questions;
#[cfg(test)]
mod mcp_serve;
#[cfg(test)]
mod mcp_servers;
#[cfg(test)]
mod models;
#[cfg(test)]
mod odd_tools;
#[cfg(test)]
mod pipes;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod preview;
#[cfg(test)]
mod prompt;
#[cfg(test)]
mod redact;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod rewind;
#[cfg(test)]
mod rule_commands;
#[cfg(test)]
mod rules;
mod sandbox;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod session_commands;
#[cfg(test)]
mod session_ends;
#[cfg(test)]
mod session_modes;
mod sessions;
#[cfg(test)]
mod sub_agents;
#[cfg(test)]
mod support;
mod switches;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod terminals;
#[cfg(test)]
mod tool_search;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod undo_log;
#[cfg(test)]
mod undo_meanwhile;
#[cfg(test)]
mod user_input;
