//! Logins at servers on real sockets, honest and hostile ones.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]

mod authority;
mod login;
mod pool;
mod refresh;
