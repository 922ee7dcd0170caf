//! Watches the context window of the model: says when the conversation must be made shorter, and
//! warns where that is switched off.

use windlass_contract::wording::counted;

use crate::CompactAt;

/// Share of the window, in per cent, at which the first warning is given.
const NEARLY_FULL_PERCENT: u64 = 80;

/// Share of the window that is left for the answer after a compaction that was asked for, where
/// automatic compaction is switched off.
const USUAL_PERCENT: u64 = 85;

/// Watches how full the window is.
#[derive(Debug)]
pub(crate) struct ContextGauge {
    /// The context window in tokens of the server; `None` if there is no limit.
    window: Option<u64>,
    compact_at: CompactAt,
    /// The size of a request after the last compaction. Another one would not get below it.
    floor: u64,
    warned: WindowFill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WindowFill {
    Enough,
    NearlyFull,
    Full,
}

impl ContextGauge {
    pub(crate) fn new(window: Option<u64>, compact_at: CompactAt) -> Self {
        Self { window, compact_at, floor: 0, warned: WindowFill::Enough }
    }

    /// Returns the context window in tokens.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Returns the size from which a request must be made shorter, or warned of; `None` if there is
    /// no such size.
    pub(crate) fn next_threshold(&self) -> Option<u64> {
        let window = self.window?;
        let share = |percent: u64| window.saturating_mul(percent) / 100;
        match (self.compact_at, self.warned) {
            (CompactAt::Percent(percent), _) => Some(share(percent.into()).max(self.floor)),
            (CompactAt::Off, WindowFill::Enough) => Some(share(NEARLY_FULL_PERCENT)),
            (CompactAt::Off, WindowFill::NearlyFull) => Some(window),
            (CompactAt::Off, WindowFill::Full) => None,
        }
    }

    /// Returns true if a request of this size must be made shorter before it is sent.
    pub(crate) fn must_compact(&self, tokens: u64) -> bool {
        let (Some(window), CompactAt::Percent(percent)) = (self.window, self.compact_at) else {
            return false;
        };
        tokens > window.saturating_mul(percent.into()) / 100
            && tokens > self.floor.saturating_add(self.floor / 10)
    }

    /// Returns the size that a request should stay below, with room for the answer.
    pub(crate) fn ceiling(&self, tokens: u64) -> u64 {
        let percent = match self.compact_at {
            CompactAt::Percent(percent) => percent.into(),
            CompactAt::Off => USUAL_PERCENT,
        };
        self.window.map_or(tokens / 2, |window| window.saturating_mul(percent) / 100)
    }

    /// Notes the size after an automatic compaction. Returns a warning if even that is too much.
    pub(crate) fn note_compacted(&mut self, tokens: u64) -> Option<String> {
        self.floor = tokens;
        let window = self.window?;
        if tokens <= self.ceiling(tokens) || self.warned == WindowFill::Full {
            return None;
        }
        self.warned = WindowFill::Full;
        Some(format!(
            "about {} remain after compaction, most of them instructions and tools, and the model reads {window} \
             (`model_context_window`): use fewer tools or a larger window",
            counted(tokens, "token"),
        ))
    }

    /// Notes that the server refused a request of this size as too long. It may name the window.
    pub(crate) fn note_refused(&mut self, tokens: u64, window: Option<u64>) {
        let named = window.unwrap_or(tokens.saturating_mul(3) / 4).max(1);
        self.window = Some(self.window.map_or(named, |window| window.min(named)));
        self.floor = 0;
    }

    /// Returns a warning about a request of this size, if it is the first of its kind. There is
    /// none where the conversation is made shorter in time.
    pub(crate) fn note(&mut self, tokens: u64) -> Option<String> {
        let (window, CompactAt::Off) = (self.window?, self.compact_at) else { return None };
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
                 server may refuse it or lose its beginning. Use `/compact` or `windlass compact`"
            ),
            WindowFill::NearlyFull | WindowFill::Enough => format!(
                "the conversation has {size}, {per_cent} % of the {window} the model reads (`model_context_window`); \
                 `/compact` or `windlass compact` makes it shorter"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_compaction_is_off_each_warning_is_given_once() {
        let mut gauge = ContextGauge::new(Some(1000), CompactAt::Off);
        assert_eq!(gauge.note(799), None);
        let nearly = gauge.note(800).unwrap();
        assert!(nearly.starts_with("the conversation has about 800 tokens, 80 % of the 1000"), "{nearly}");
        assert_eq!(gauge.note(1000), None);
        let full = gauge.note(1001).unwrap();
        assert!(full.contains("about 1001 tokens, more than the 1000"), "{full}");
        assert_eq!(gauge.note(5000), None);
        assert!(!gauge.must_compact(5000));
        assert_eq!(ContextGauge::new(None, CompactAt::Off).note(5000), None);
    }

    #[test]
    fn a_conversation_is_made_shorter_at_its_share_of_the_window() {
        let mut gauge = ContextGauge::new(Some(1000), CompactAt::Percent(70));
        assert!(!gauge.must_compact(700) && gauge.must_compact(701));
        assert_eq!(gauge.note(900), None);
        assert_eq!((gauge.ceiling(0), gauge.next_threshold()), (700, Some(700)));
        assert_eq!(gauge.note_compacted(300), None);
        assert!(gauge.must_compact(701));
        assert!(gauge.note_compacted(720).unwrap().contains("about 720 tokens remain"));
        assert!(!gauge.must_compact(780), "it would be in vain");
    }

    #[test]
    fn a_refusal_teaches_the_window() {
        let window = |named| {
            let mut gauge = ContextGauge::new(Some(200_000), CompactAt::Percent(85));
            gauge.note_refused(10_000, named);
            gauge.window
        };
        assert_eq!((window(Some(8000)), window(None)), (Some(8000), Some(7500)));
    }
}
