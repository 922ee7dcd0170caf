//! The Model Context Protocol: tools of other servers in, our tools out.
//!
//! The only crate that names the types of `rmcp`.

pub mod config;
pub mod definition;
