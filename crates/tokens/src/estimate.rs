//! Estimates tokens for models whose tokenizer is not known.

/// Estimates the tokens of a text. Four ASCII characters are a token, as in English text and code.
/// Other scripts have fewer characters per token, the fewer the more bytes a character has: two for
/// Cyrillic or Greek, one for Chinese, Japanese and Korean, and a third of one for emoji. By bytes
/// alone, Chinese would be counted at three quarters of a token per character; tokenizers of small
/// models need one or more.
pub fn estimate(text: &str) -> u64 {
    quarter_tokens(text) / 4
}

/// Estimates the tokens of a text that arrives in pieces, in quarters of a token.
pub fn quarter_tokens(text: &str) -> u64 {
    text.bytes().map(quarters_of_character).sum()
}

/// Returns the quarters of a token that a character counts, by its first byte.
fn quarters_of_character(byte: u8) -> u64 {
    match byte {
        0..0x80 => 1,
        0x80..0xC0 => 0,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 4,
        0xF0.. => 12,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;

    #[test]
    fn no_script_is_counted_far_below_its_tokens() {
        // A sentence of each script. The vocabulary of 2023 stands for those of other models.
        for text in [
            "The quick brown fox jumps over the lazy dog, and nobody is surprised.",
            "fn sum(values: &[u64]) -> u64 {\n    values.iter().copied().sum()\n}\n",
            "请阅读配置文件，找出测试失败的原因，然后修改代码。",
            "設定ファイルを読んで、テストが失敗する原因を探してください。",
            "설정 파일을 읽고 테스트가 실패하는 원인을 찾아 주세요.",
            "Прочитай настройки и найди причину, по которой падает тест.",
            "🚀🎉✅",
        ] {
            let (estimated, counted) = (estimate(text), Vocabulary::Cl100k.count(text));
            assert!(estimated * 10 >= counted * 7, "{estimated} for {counted}: {text}");
        }
    }
}
