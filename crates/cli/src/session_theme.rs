//! The colours of an interactive session.

use windlass_tui::render::Theme;

use crate::config::TuiTheme;

/// The colours, as far as they are known before the terminal is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SessionTheme {
    pub(crate) theme: Theme,
    /// Set if the terminal is to be asked for its background.
    pub(crate) detects_background: bool,
}

impl SessionTheme {
    /// Chooses colours.
    pub(crate) fn choose(
        wanted: TuiTheme,
        has_colour: bool,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        // The console of Linux prints the question instead of answering it.
        let can_ask = variable("TERM").is_none_or(|terminal| terminal != "linux");
        let (theme, is_open) = match wanted {
            _ if !has_colour => (Theme::no_colour(), false),
            TuiTheme::None => (Theme::no_colour(), false),
            TuiTheme::Dark => (Theme::dark(), false),
            TuiTheme::Light => (Theme::light(), false),
            TuiTheme::Auto if variable("COLORFGBG").is_some_and(|colours| is_light(&colours)) => {
                (Theme::light(), true)
            }
            TuiTheme::Auto => (Theme::dark(), true),
        };
        Self { theme, detects_background: is_open && can_ask }
    }
}

/// Returns true if the last of the colours in `COLORFGBG`, the background, is white or bright.
fn is_light(colours: &str) -> bool {
    let background = colours.rsplit(';').next().and_then(|colour| colour.parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_decides_unless_a_theme_is_set_or_colours_are_unwanted() {
        let choose = |wanted, has_colour, colours: Option<&str>| {
            SessionTheme::choose(wanted, has_colour, &|name| {
                colours.filter(|_| name == "COLORFGBG").map(str::to_owned)
            })
        };
        let expect = |theme, detects_background| SessionTheme { theme, detects_background };
        assert_eq!(choose(TuiTheme::Auto, true, None), expect(Theme::dark(), true));
        assert_eq!(choose(TuiTheme::Auto, true, Some("0;15")), expect(Theme::light(), true));
        assert_eq!(choose(TuiTheme::Auto, true, Some("0;default;15")), expect(Theme::light(), true));
        assert_eq!(choose(TuiTheme::Auto, true, Some("15;0")), expect(Theme::dark(), true));
        assert_eq!(choose(TuiTheme::Light, true, Some("15;0")), expect(Theme::light(), false));
        assert_eq!(choose(TuiTheme::None, true, None), expect(Theme::no_colour(), false));
        assert_eq!(choose(TuiTheme::Light, false, None), expect(Theme::no_colour(), false));
        let console = |name: &str| (name == "TERM").then(|| "linux".to_owned());
        let chosen = SessionTheme::choose(TuiTheme::Auto, true, &console);
        assert_eq!(chosen, expect(Theme::dark(), false));
    }
}
