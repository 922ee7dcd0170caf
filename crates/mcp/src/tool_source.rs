//! Supplies the tools of all servers to a session.
