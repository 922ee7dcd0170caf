//! A tool of a server as a tool of Windlass.
