//! OAuth logins of HTTP servers.
