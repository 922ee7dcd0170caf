//! Results of servers as outputs of tools.
