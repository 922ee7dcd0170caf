//! The interactive session in a terminal.

pub mod render;
