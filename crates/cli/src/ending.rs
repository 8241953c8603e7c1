//! How a command ended that could do its work.

/// Exit code 0 or 1. What could not do its work is an error, and exit code 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All delivered, or nothing found.
    Well,
    /// Anything else.
    NotWell,
}

impl Ending {
    pub(crate) const fn well_if(well: bool) -> Self {
        if well { Self::Well } else { Self::NotWell }
    }
}
