//! Layers, errors and what is shown.
