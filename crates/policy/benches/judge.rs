//! How long one judgement takes.

fn main() {}
