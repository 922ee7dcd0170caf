//! The catalogue: lists of tools saved between sessions.
