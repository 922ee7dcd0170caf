//! Settings that commands see in the place of secret ones.
//!
//! Some programs read settings whenever they start, and fail if they may not: yarn reads
//! `~/.npmrc`, where npm keeps tokens. They see settings that say nothing.

use std::path::Path;

/// A text that stands for a secret file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandIn {
    Empty,
    /// Maven takes no empty file.
    MavenSettings,
}

/// Secret settings by the end of their path, each with who fails without.
const STAND_INS: [(&str, StandIn); 11] = [
    // yarn 1
    (".npmrc", StandIn::Empty),
    (".yarnrc", StandIn::Empty),
    // yarn 2 and later
    (".yarnrc.yml", StandIn::Empty),
    (".m2/settings.xml", StandIn::MavenSettings),
    // conda and mamba
    (".condarc", StandIn::Empty),
    (".config/conda/condarc", StandIn::Empty),
    (".mambarc", StandIn::Empty),
    (".config/uv/uv.toml", StandIn::Empty),
    (".cabal/config", StandIn::Empty),
    (".prefect/profiles.toml", StandIn::Empty),
    (".semgrep/settings.yml", StandIn::Empty),
];

impl StandIn {
    pub(crate) fn all() -> [Self; 2] {
        [Self::Empty, Self::MavenSettings]
    }

    /// Finds what stands for a secret file.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        STAND_INS.iter().find(|(end, _)| path.ends_with(end)).map(|(_, stand_in)| *stand_in)
    }

    /// The name of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::MavenSettings => "settings.xml",
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Empty => "",
            Self::MavenSettings => "<settings/>\n",
        }
    }
}
