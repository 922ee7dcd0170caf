//! The gateway: configured servers behind one endpoint.
