//! Secrets of a user.

mod keys;
mod programs;
mod services;

use super::SecretPath;

/// Paths that hold credentials of a user, relative to the home directory.
pub fn home_secrets() -> impl Iterator<Item = &'static SecretPath> {
    [keys::KEYS, services::SERVICES, programs::PROGRAMS].into_iter().flatten()
}
