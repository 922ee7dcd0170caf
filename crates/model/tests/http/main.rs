//! Both clients against a real HTTP server on loopback.

// `cfg(test)` lets helpers unwrap as tests do.
#[cfg(test)]
mod ask;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod refused_items;
#[cfg(test)]
mod server;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod tls;
