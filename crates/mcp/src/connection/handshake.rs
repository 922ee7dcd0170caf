//! The first exchange with a server. A server of 2026-07-28 answers `server/discover`; an older one
//! expects `initialize`. The version that worked is tried first next time.

use rmcp::{
    ClientServiceExt, RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, RunningService},
    transport::Transport,
};

use super::server_requests::ServerRequests;

/// A way to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtocolEra {
    /// Not known: `server/discover`, then `initialize` on the same connection.
    Unknown,
    /// `server/discover`.
    Discover,
    /// `initialize`.
    Initialize,
}

impl ProtocolEra {
    /// Returns the ways to try, each on a connection of its own. `known_version` is the version
    /// that worked last time.
    pub(crate) fn attempts(known_version: Option<&str>) -> [Self; 2] {
        match known_version {
            // Some old servers end at a request before `initialize`.
            None => [Self::Unknown, Self::Initialize],
            Some(version) if version < ProtocolVersion::NO_INITIALIZE.as_str() => {
                [Self::Initialize, Self::Discover]
            }
            Some(_) => [Self::Discover, Self::Initialize],
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Unknown => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Discover => ClientLifecycleMode::Discover { preferred_versions },
            Self::Initialize => ClientLifecycleMode::Initialize,
        }
    }
}

/// The reason why the first exchange failed.
#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    /// The server demands a login.
    NeedsLogin,
    /// Another way to begin may work.
    OtherEra(String),
    /// The server cannot be reached.
    Unreachable(String),
    /// The server did not answer in time.
    TooSlow,
}

/// Begins a connection.
pub(crate) async fn begin<T: Transport<RoleClient> + 'static>(
    transport: T,
    handler: ServerRequests,
    era: ProtocolEra,
) -> Result<RunningService<RoleClient, ServerRequests>, HandshakeFailure> {
    let service = handler.serve_with_lifecycle(transport, era.lifecycle()).await.map_err(failure)?;
    let version = service.peer_info().map(|info| info.protocol_version.clone());
    match version {
        Some(version) if ProtocolVersion::KNOWN_VERSIONS.contains(&version) => Ok(service),
        Some(version) => {
            let reason = format!("it speaks version `{version}` of the protocol, which is not known");
            Err(HandshakeFailure::OtherEra(reason))
        }
        None => Err(HandshakeFailure::OtherEra("it did not tell its version".to_owned())),
    }
}

fn failure(error: ClientInitializeError) -> HandshakeFailure {
    if error.auth_challenge().is_some() || error.is_authorization_required() {
        return HandshakeFailure::NeedsLogin;
    }
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            HandshakeFailure::Unreachable(causes(error.error.as_ref()))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => failure(*fallback),
        ClientInitializeError::ConnectionClosed(_) => {
            HandshakeFailure::OtherEra("it closed the connection during the start".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            HandshakeFailure::OtherEra(format!("it answered with error {}: {}", error.code.0, error.message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            HandshakeFailure::OtherEra(format!("it supports other versions: {}", versions.join(", ")))
        }
        // The whole answer of a server does not belong in a message.
        _ => HandshakeFailure::OtherEra("its first answer is not valid".to_owned()),
    }
}

/// Returns an error and its causes in one line.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_worked_is_tried_first() {
        use ProtocolEra::{Discover, Initialize, Unknown};
        assert_eq!(ProtocolEra::attempts(None), [Unknown, Initialize]);
        assert_eq!(ProtocolEra::attempts(Some("2024-11-05")), [Initialize, Discover]);
        assert_eq!(ProtocolEra::attempts(Some("2025-11-25")), [Initialize, Discover]);
        assert_eq!(ProtocolEra::attempts(Some("2026-07-28")), [Discover, Initialize]);
    }
}
