//! The Model Context Protocol: tools of other servers in, our tools out.
//!
//! The only crate that names the types of `rmcp`.

pub mod access_tokens;
pub mod catalogue;
pub mod config;
mod connection;
pub mod credentials;
pub mod definition;
pub mod gateway;
pub mod listing;
pub mod names;
pub mod oauth;
pub mod output;
pub mod pins;
pub mod pool;
pub mod question_dialogue;
pub mod resources;
pub mod result;
pub mod schemas;
pub mod serve;
mod server_origin;
mod server_slot;
mod state_file;
pub mod status;
pub mod tool;
pub mod tool_source;
pub mod unpinned_runner;

use windlass_contract::untrusted_text;
