//! To be filled in the next commits.
