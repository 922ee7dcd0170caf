//! The file of OAuth credentials.
