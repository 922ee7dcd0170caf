//! Cost of counting: `cargo bench -p windlass-tokens`. Numbers are printed, never asserted.

use std::{
    hint::black_box,
    io::{Write, stdout},
    time::Instant,
};

use windlass_tokens::{Vocabulary, estimate};

fn main() -> std::io::Result<()> {
    let source = include_str!("../src/vocabulary.rs");
    let prose = include_str!("../data/README.md");
    let texts = [
        ("Rust", source.repeat(1_000_000 / source.len())),
        ("prose", prose.repeat(1_000_000 / prose.len())),
        ("Chinese", "请阅读配置文件，找出测试失败的原因。".repeat(20_000)),
        ("dashes", "-".repeat(1_000_000)),
        ("letters", "abcdefghij".repeat(100_000)),
    ];
    for vocabulary in Vocabulary::ALL {
        let began = Instant::now();
        black_box(vocabulary.count("x"));
        writeln!(stdout(), "{}: tables {:.2?}", vocabulary.name(), began.elapsed())?;
        for (name, text) in &texts {
            let began = Instant::now();
            let count = black_box(vocabulary.count(text));
            let (time, bytes) = (began.elapsed(), text.len());
            writeln!(stdout(), "{}: {bytes} bytes of {name}: {count} tokens, {time:.2?}", vocabulary.name())?;
        }
    }
    for (name, text) in &texts {
        let began = Instant::now();
        let count = black_box(estimate(text));
        writeln!(stdout(), "estimate: {name}: {count} tokens, {:.2?}", began.elapsed())?;
    }
    Ok(())
}
