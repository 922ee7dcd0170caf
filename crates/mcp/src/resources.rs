//! The tools that list and read resources.
