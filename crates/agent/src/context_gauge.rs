//! Watches the model's context window and warns when it fills up.

use windlass_contract::wording::counted;

/// Share of the window, in per cent, at which the first warning is given.
const NEARLY_FULL_PERCENT: u64 = 80;

/// Warns once when the window is nearly full, and once when it is full.
#[derive(Debug)]
pub(crate) struct ContextGauge {
    /// The context window in tokens; `None` if there is no limit.
    window: Option<u64>,
    warned: WindowFill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WindowFill {
    Enough,
    NearlyFull,
    Full,
}

impl ContextGauge {
    pub(crate) fn new(window: Option<u64>) -> Self {
        Self { window, warned: WindowFill::Enough }
    }

    /// Returns the context window in tokens.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Returns the number of tokens from which [`note`](Self::note) may have a warning; `None` if
    /// it has no more.
    pub(crate) fn next_warning(&self) -> Option<u64> {
        let window = self.window?;
        match self.warned {
            WindowFill::Enough => Some(window.saturating_mul(NEARLY_FULL_PERCENT) / 100),
            WindowFill::NearlyFull => Some(window),
            WindowFill::Full => None,
        }
    }

    /// Returns a warning about a request of this size, if it is the first of its kind.
    pub(crate) fn note(&mut self, tokens: u64) -> Option<String> {
        let window = self.window?;
        let per_cent = tokens.saturating_mul(100) / window.max(1);
        let fill = match per_cent {
            _ if tokens > window => WindowFill::Full,
            NEARLY_FULL_PERCENT.. => WindowFill::NearlyFull,
            _ => WindowFill::Enough,
        };
        if fill <= self.warned {
            return None;
        }
        self.warned = fill;
        let size = format!("about {}", counted(tokens, "token"));
        Some(match fill {
            WindowFill::Full => format!(
                "the conversation has {size}, more than the {window} the model reads (`model_context_window`); its \
                 server may refuse it or lose its beginning. Begin a new session"
            ),
            WindowFill::NearlyFull | WindowFill::Enough => format!(
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
        assert_eq!((gauge.next_warning(), gauge.note(799)), (Some(800), None));
        let nearly = gauge.note(800).unwrap();
        assert!(nearly.starts_with("the conversation has about 800 tokens, 80 % of the 1000"), "{nearly}");
        assert_eq!((gauge.next_warning(), gauge.note(1000)), (Some(1000), None));
        let full = gauge.note(1001).unwrap();
        assert!(full.contains("about 1001 tokens, more than the 1000"), "{full}");
        assert_eq!((gauge.next_warning(), gauge.note(1002)), (None, None));
    }

    #[test]
    fn a_request_that_is_too_long_at_once_is_told_once() {
        let mut gauge = ContextGauge::new(Some(1000));
        assert!(gauge.note(5000).is_some());
        assert_eq!((gauge.next_warning(), gauge.note(900)), (None, None));
        assert_eq!(ContextGauge::new(None).next_warning(), None);
    }
}
