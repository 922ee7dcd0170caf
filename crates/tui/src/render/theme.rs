//! Colours by role. No meaning depends on a colour alone: signs, words and glyphs say the same.

use ratatui::style::{Color, Modifier, Style};

/// The style of each role on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Set if programs' own colours are shown.
    pub has_colour: bool,
    /// Ordinary text.
    pub text: Style,
    /// Text of less importance: durations, line numbers, hints.
    pub dim: Style,
    /// Headings and titles.
    pub heading: Style,
    /// Code in text, and code blocks.
    pub code: Style,
    /// The address of a link.
    pub link: Style,
    /// The bar beside quotes and the lines of tables.
    pub border: Style,
    /// The name of a tool.
    pub tool: Style,
    /// A call that succeeded, a step that is done.
    pub success: Style,
    /// A call that failed.
    pub failure: Style,
    /// Something to notice: a warning, a refusal, a step in progress.
    pub warning: Style,
    /// The dangerous or unclear part of a command.
    pub danger: Style,
    /// A key to press.
    pub key: Style,
    /// An added line.
    pub added: Style,
    /// The words of an added line that are new.
    pub added_word: Style,
    /// A removed line.
    pub removed: Style,
    /// The words of a removed line that are gone.
    pub removed_word: Style,
}

impl Theme {
    /// Returns the theme for dark backgrounds.
    pub fn dark() -> Self {
        Self::from_palette(&Palette {
            dim: Color::DarkGray,
            accent: Color::LightCyan,
            link: Color::LightBlue,
            good: Color::LightGreen,
            bad: Color::LightRed,
            notice: Color::LightYellow,
        })
    }

    /// Returns the theme for light backgrounds: no bright colours, which are hard to read there.
    pub fn light() -> Self {
        Self::from_palette(&Palette {
            dim: Color::DarkGray,
            accent: Color::Blue,
            link: Color::Blue,
            good: Color::Green,
            bad: Color::Red,
            notice: Color::Magenta,
        })
    }

    /// Returns the theme without colours, for `NO_COLOR`.
    pub fn no_colour() -> Self {
        let plain = Style::new();
        let (bold, underlined) =
            (plain.add_modifier(Modifier::BOLD), plain.add_modifier(Modifier::UNDERLINED));
        Self {
            has_colour: false,
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            heading: bold,
            code: plain,
            link: underlined,
            border: plain,
            tool: bold,
            success: plain,
            failure: bold,
            warning: bold,
            danger: bold.add_modifier(Modifier::REVERSED),
            key: bold,
            added: plain,
            added_word: underlined,
            removed: plain,
            removed_word: underlined,
        }
    }

    fn from_palette(palette: &Palette) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let (good, bad) = (plain.fg(palette.good), plain.fg(palette.bad));
        Self {
            has_colour: true,
            text: plain,
            dim: plain.fg(palette.dim),
            heading: bold.fg(palette.accent),
            code: plain.fg(palette.accent),
            link: plain.fg(palette.link).add_modifier(Modifier::UNDERLINED),
            border: plain.fg(palette.dim),
            tool: bold,
            success: good,
            failure: bad.add_modifier(Modifier::BOLD),
            warning: plain.fg(palette.notice),
            danger: bad.add_modifier(Modifier::BOLD | Modifier::REVERSED),
            key: bold.fg(palette.accent),
            added: good,
            added_word: good.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            removed: bad,
            removed_word: bad.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        }
    }
}

/// The colours of a theme. The sixteen named ones, which terminals let their users choose.
struct Palette {
    dim: Color,
    accent: Color,
    link: Color,
    good: Color,
    bad: Color,
    notice: Color,
}
