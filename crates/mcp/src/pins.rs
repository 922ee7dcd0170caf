//! Pins: the definitions of tools that the user has approved.
