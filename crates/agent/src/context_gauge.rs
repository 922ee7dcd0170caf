//! How full the model's context window is, and when to say so.

use windlass_contract::wording::counted;

/// From how many per cent on the conversation is called long.
const NEARLY_FULL_PERCENT: u64 = 80;

/// Says once that the window is nearly full, and once that it is full.
#[derive(Debug)]
pub(crate) struct ContextGauge {
    /// How many tokens the model reads; none if that is no matter.
    window: Option<u64>,
    told: Fill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fill {
    Enough,
    NearlyFull,
    Full,
}

impl ContextGauge {
    pub(crate) fn new(window: Option<u64>) -> Self {
        Self { window, told: Fill::Enough }
    }

    /// A warning about a request of so many tokens, if it is the first of its kind.
    pub(crate) fn note(&mut self, tokens: impl FnOnce() -> u64) -> Option<String> {
        let window = self.window?;
        if self.told == Fill::Full {
            return None;
        }
        let tokens = tokens();
        let per_cent = tokens.saturating_mul(100) / window.max(1);
        let fill = match per_cent {
            _ if tokens > window => Fill::Full,
            NEARLY_FULL_PERCENT.. => Fill::NearlyFull,
            _ => Fill::Enough,
        };
        if fill <= self.told {
            return None;
        }
        self.told = fill;
        let size = format!("about {}", counted(tokens, "token"));
        Some(match fill {
            Fill::Full => format!(
                "the conversation has {size}, more than the {window} the model reads (`model_context_window`); its \
                 server may refuse it or lose its beginning. Begin a new session"
            ),
            Fill::NearlyFull | Fill::Enough => format!(
                "the conversation has {size}, {per_cent} % of the {window} the model reads (`model_context_window`); \
                 begin a new session soon"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_given_once() {
        let mut gauge = ContextGauge::new(Some(1000));
        assert_eq!(gauge.note(|| 799), None);
        let nearly = gauge.note(|| 800).unwrap();
        assert!(nearly.starts_with("the conversation has about 800 tokens, 80 % of the 1000"), "{nearly}");
        assert_eq!(gauge.note(|| 1000), None);
        let full = gauge.note(|| 1001).unwrap();
        assert!(full.contains("about 1001 tokens, more than the 1000"), "{full}");
        assert_eq!(gauge.note(|| unreachable!("all is said")), None);
    }

    #[test]
    fn a_request_that_is_too_long_at_once_is_told_once() {
        let mut gauge = ContextGauge::new(Some(1000));
        assert!(gauge.note(|| 5000).is_some());
        assert_eq!(gauge.note(|| 900), None);
        assert_eq!(ContextGauge::new(None).note(|| unreachable!("there is no window")), None);
    }
}
