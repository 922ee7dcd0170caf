//! Turns events and results into styled lines. Everything here is pure: no terminal, no clock, no
//! files. Every function takes data, a width in columns and a [`Theme`], and returns lines without
//! control characters that fit the width (from [`wrap::MIN_COLUMNS`] columns on).

pub mod ansi;
pub mod approval;
pub mod diff;
pub mod highlight;
pub mod markdown;
pub mod plan;
pub mod status;
pub mod theme;
pub mod tool_call;
pub mod visible;
pub mod wrap;

pub use theme::Theme;
