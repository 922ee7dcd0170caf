//! What every test needs: a user with the program, and a server that says what it is told to say.

mod emulator;
mod mcp_client;
mod mcp_server;
mod server;
mod user;
mod wire;

pub(crate) use emulator::Emulator;
pub(crate) use mcp_client::{McpClient, accept, text};
pub(crate) use server::{Reply, Request, Server, Step, chunk, repeated};
pub(crate) use user::{Ended, FOREVER, FULL_ACCESS, Running, User, lines, signal};
pub(crate) use wire::{Call, Wire, command};
