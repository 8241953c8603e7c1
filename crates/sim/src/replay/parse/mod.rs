//! From text to a scenario.

mod setup;
mod steps;
mod wants;

use super::error::ScriptError;
use super::script::{Line, Scenario, Setup};
use super::words::Words;

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// The first line that cannot be read, what was expected there and what was found.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut scenario = Self {
            title: String::new(),
            about: head(text),
            text: text.to_owned(),
            setup: Setup::default(),
            steps: Vec::new(),
        };
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = Words::split(number, line);
            if words.is_empty() {
                continue;
            }
            let is_setup = scenario.steps.is_empty() && scenario.read_setup(&mut words)?;
            if !is_setup {
                let step = steps::read(&mut words, &scenario.setup, number)?;
                scenario.steps.push(Line { number, step });
            }
            words.end()?;
        }
        if scenario.steps.is_empty() {
            let line = text.lines().count().max(1);
            return Err(ScriptError { line, wanted: "a step such as `send r1`", found: None });
        }
        Ok(scenario)
    }
}

/// What the comment at the top says.
fn head(text: &str) -> Vec<String> {
    let comments = text.lines().map_while(|line| line.strip_prefix('#'));
    comments.map(|line| line.trim().to_owned()).collect()
}

/// A broker's name must be one of those that there are.
fn broker(words: &mut Words, setup: &Setup) -> Result<String, ScriptError> {
    words.read("a broker or seed of this scenario", |word| {
        let known = setup.names.iter().chain(&setup.seeds).any(|name| name == word);
        known.then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_line_and_expectation() {
        let bad = [
            ("", 1, "a step"),
            ("brokers A\nsend r1\nout C [0]", 3, "a broker"),
            ("send r1\nout A 0", 2, "[0-9]"),
            ("send r1 to", 1, "a topic"),
            ("send r1\ntick soon", 2, "a time"),
            ("send r1\nexpect lots r1", 2, "delivered"),
            ("frobnicate", 1, "send"),
            ("send r1\nbrokers A", 2, "answer or wait"),
            ("send r1\ntopic u", 2, "a step"),
            ("config colour red\nsend r1", 1, "a setting"),
            ("model A B 9.9\nsend r1", 1, "2.4"),
            ("send r1\nin A err x", 2, "a number"),
            ("send r1 r2", 1, "the end of the line"),
        ];
        for (text, line, wanted) in bad {
            let error = Scenario::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn any_prefix_of_a_scenario_is_read_or_refused() {
        let text = "brokers A B\ntopic u 3 led by A B\nconfig linger 1s\nsend r1..r3 to u-1 key \
                    \"a b\" deadline 3s\nout A [0-2] e1 u-1 r1..r3\nin A u-1 err 87 records 1 \
                    \"bad\", u-2 ok 7 throttle 3s\neof A handed 10\nexpect delivered r1 @9\n";
        for end in 0..=text.len() {
            let _read = Scenario::parse(&text[..end]);
        }
    }
}
