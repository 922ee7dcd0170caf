//! Turns events and results into styled lines.
