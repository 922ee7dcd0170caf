//! `windlass mcp login` and `windlass mcp logout`: logins of HTTP servers.

use std::{future::pending, io, thread};

use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use windlass::{
    Stop,
    host::Window,
    mcp::{
        catalogue::Catalogue,
        config::McpServerConfig,
        credentials::SecretText,
        oauth::{LoginSettings, LoginState, OAuthError, OAuthLogin, Revocation, login_status, logout},
        pool::RemoteError,
    },
};

use super::{ConfiguredServer, connections, reported_servers};
use crate::{
    exit::ProgramExit, interrupts, note, output::print, problem::CliProblem, screen::visible,
    setup::ProgramSetup,
};

/// Runs `login`.
pub(super) fn run(setup: &ProgramSetup, name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = reported_servers(setup);
    let mut server = configured.usable(name)?.clone();
    server.config = McpServerConfig { enabled: None, ..server.config };
    let stop = Stop::default();
    interrupts::watch(stop.clone(), Window::of_terminal())?;
    crate::runtime()?.block_on(async {
        tokio::select! {
            biased;
            _reason = stop.stopped() => Ok(ProgramExit::Interrupted),
            end = log_in(setup, name, &server, json) => end,
        }
    })
}

async fn log_in(
    setup: &ProgramSetup,
    name: &str,
    server: &ConfiguredServer,
    json: bool,
) -> Result<ProgramExit, CliProblem> {
    let client_secret = client_secret(name, &server.config)?;
    let settings = LoginSettings { client_secret, ..LoginSettings::new(connections::directory(setup)) };
    let challenge = challenge(setup, name, server).await;
    let started = OAuthLogin::start(name, &server.config, challenge.as_deref(), &settings).await;
    let mut login = started.map_err(|error| failed(&error))?;
    if json {
        let address = json!({"address": login.address(), "redirect_address": login.redirect_address()});
        print(&format!("{address}\n"))?;
    } else {
        note("Open this address in a browser, on any machine:");
        print(&format!("{}\n", visible(login.address())))?;
        note(
            "If the browser is on this machine, the login ends by itself. If not, copy the address \
             that it could not open, paste it here and press Enter:",
        );
    }
    let mut pasted = typed_lines();
    loop {
        let line = async {
            match pasted.recv().await {
                Some(line) => line,
                // There is no more input; the browser may still come back.
                None => pending().await,
            }
        };
        match login.finish(line).await {
            Ok(_login) => break,
            Err(error @ OAuthError::WrongRedirect) => note(&format!("{error}; paste it again")),
            Err(error) => return Err(failed(&error)),
        }
    }
    let forgotten = Catalogue::open(&settings.directory).clear_failure(name, &server.config);
    if let Err(error) = forgotten {
        note(&format!("warning: `windlass mcp list` shows the old state until the next start: {error}"));
    }
    let state = login_status(name, &server.config, &settings.directory).await;
    report(name, &state.map_err(|error| failed(&error))?, json)
}

/// Returns the secret of a client that was registered beforehand.
fn client_secret(name: &str, config: &McpServerConfig) -> Result<Option<SecretText>, CliProblem> {
    let Some(variable) = &config.oauth_client_secret_env_var else { return Ok(None) };
    match std::env::var(variable) {
        Ok(secret) => Ok(Some(SecretText::from(secret))),
        Err(_) => Err(CliProblem::failed(format!(
            "cannot log in to `{}`: the environment variable `{}` (`oauth_client_secret_env_var`) is not set",
            visible(name),
            visible(variable),
        ))),
    }
}

/// Returns the demand of the server, if it refuses a request without a login.
async fn challenge(setup: &ProgramSetup, name: &str, server: &ConfiguredServer) -> Option<String> {
    let (pool, tokens) = connections::pool_with_tokens(setup, [(name, server)]);
    let answer = pool.start(name).await;
    pool.shut_down().await;
    match answer {
        Ok(_listing) => {
            note(&format!("`{}` answers already; a new login replaces the old one", visible(name)));
            None
        }
        Err(RemoteError::NeedsLogin { .. }) => tokens.last_challenge(name),
        // The login finds out what is wrong.
        Err(_) => None,
    }
}

/// Reads lines of stdin on a thread, because a blocking read cannot be cancelled. It ends with the
/// process.
fn typed_lines() -> UnboundedReceiver<String> {
    let (lines, typed) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if !line.trim().is_empty() && lines.send(line.trim().to_owned()).is_err() {
                return;
            }
        }
    });
    typed
}

fn report(name: &str, state: &LoginState, json: bool) -> Result<ProgramExit, CliProblem> {
    if json {
        let mut value = json!(state);
        value["server"] = json!(name);
        return print(&format!("{value}\n"));
    }
    note(&format!("{}: {}", visible(name), in_words(state)));
    Ok(ProgramExit::Done)
}

/// Describes a login.
pub(super) fn in_words(state: &LoginState) -> String {
    match state {
        LoginState::NotLoggedIn => "not logged in".to_owned(),
        LoginState::Expired => "the login has expired".to_owned(),
        LoginState::LoggedIn { issuer, scopes, renews, .. } => {
            let at = issuer.as_ref().map_or_else(String::new, |issuer| format!(" at {}", visible(issuer)));
            let scopes = visible(&scopes.join(", "));
            let scopes = if scopes.is_empty() { String::new() } else { format!(", with {scopes}") };
            let renews = if *renews { "" } else { ", until it expires" };
            format!("logged in{at}{scopes}{renews}")
        }
    }
}

/// Runs `logout`.
pub(super) fn log_out(setup: &ProgramSetup, name: &str, json: bool) -> Result<ProgramExit, CliProblem> {
    let configured = reported_servers(setup);
    let server = configured.usable(name)?;
    let directory = connections::directory(setup);
    let ended = crate::runtime()?.block_on(logout(name, &server.config, &directory));
    let ended = ended.map_err(|error| failed(&error))?;
    if json {
        print(&format!("{:#}\n", json!({"server": name, "revocation": ended})))?;
    } else {
        let words = match &ended {
            Revocation::NotLoggedIn => "was not logged in".to_owned(),
            Revocation::Revoked => "logged out".to_owned(),
            Revocation::NotOffered => "logged out; its tokens are deleted here, and expire there".to_owned(),
            Revocation::Failed(reason) => {
                format!("logged out here; its tokens may stay valid there: {}", visible(reason))
            }
        };
        note(&format!("{}: {words}", visible(name)));
    }
    Ok(if ended == Revocation::NotLoggedIn { ProgramExit::Failed } else { ProgramExit::Done })
}

fn failed(error: &OAuthError) -> CliProblem {
    CliProblem::failed(visible(&crate::problem::chain(error)))
}
