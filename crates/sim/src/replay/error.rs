//! What is wrong with a scenario's text.

use std::fmt;

/// A line that cannot be read.
///
/// ```
/// use candor_sim::replay::Scenario;
/// let error = Scenario::parse("send r1 nowhere\n").unwrap_err();
/// assert_eq!(error.line, 1);
/// assert!(error.to_string().contains("found `nowhere`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What could have stood there.
    pub wanted: &'static str,
    /// What stands there; `None` if the line ends.
    pub found: Option<String>,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}, ", self.line, self.wanted)?;
        match &self.found {
            Some(found) => write!(f, "found `{found}`"),
            None => f.write_str("but the line ends"),
        }
    }
}

impl std::error::Error for ScriptError {}
