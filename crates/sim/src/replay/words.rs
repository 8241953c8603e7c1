//! One line of a scenario, word by word.

use std::collections::VecDeque;

use candor_core::Span;

use super::error::ScriptError;

/// The words of a line that are not read yet.
#[derive(Clone, Debug)]
pub(super) struct Words {
    line: usize,
    words: VecDeque<String>,
}

/// A topic and a partition: `t-0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) topic: String,
    pub(super) partition: i32,
}

/// The partition that is meant if none is named.
impl Default for Place {
    fn default() -> Self {
        Self { topic: "t".to_owned(), partition: 0 }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Sequences as scenarios write them: `[0-9]`, or `[7]` for a single one.
pub(super) fn range_text((first, last): (i32, i32)) -> String {
    if first == last { format!("[{first}]") } else { format!("[{first}-{last}]") }
}

type Read<T> = Result<T, ScriptError>;

impl Words {
    /// Splits a line: at white space, but for what stands in double quotes. `#` begins a comment.
    pub(super) fn split(line: usize, text: &str) -> Self {
        let mut words = VecDeque::new();
        let (mut word, mut quoted, mut begun) = (String::new(), false, false);
        for c in text.chars() {
            match c {
                '"' => (quoted, begun) = (!quoted, true),
                '#' if !quoted => break,
                c if c.is_whitespace() && !quoted => {
                    if begun {
                        words.push_back(std::mem::take(&mut word));
                    }
                    begun = false;
                }
                c => {
                    word.push(c);
                    begun = true;
                }
            }
        }
        if begun {
            words.push_back(word);
        }
        Self { line, words }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn peek(&self) -> Option<&str> {
        self.words.front().map(String::as_str)
    }

    /// The word behind the next one.
    pub(super) fn second(&self) -> Option<&str> {
        self.words.get(1).map(String::as_str)
    }

    /// An error about the next word.
    pub(super) fn wanted(&self, wanted: &'static str) -> ScriptError {
        self.not(self.peek(), wanted)
    }

    /// An error about this word.
    pub(super) fn not(&self, found: Option<&str>, wanted: &'static str) -> ScriptError {
        ScriptError { line: self.line, wanted, found: found.map(str::to_owned) }
    }

    /// The next word, whatever it is.
    pub(super) fn word(&mut self, wanted: &'static str) -> Read<String> {
        self.words.pop_front().ok_or_else(|| self.wanted(wanted))
    }

    /// Skips a word that was looked at.
    pub(super) fn skip(&mut self) {
        self.words.pop_front();
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        if is {
            self.words.pop_front();
        }
        is
    }

    /// The next word must be this one.
    pub(super) fn must(&mut self, word: &'static str) -> Read<()> {
        if self.take(word) { Ok(()) } else { Err(self.wanted(word)) }
    }

    /// Nothing may follow.
    pub(super) fn end(&self) -> Read<()> {
        if self.is_empty() { Ok(()) } else { Err(self.wanted("the end of the line")) }
    }

    /// All that is left, as one text.
    pub(super) fn rest(&mut self) -> String {
        let words: Vec<String> = self.words.drain(..).collect();
        words.join(" ")
    }

    /// The next word, as something that it must be.
    pub(super) fn read<T>(
        &mut self,
        wanted: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Read<T> {
        let word = self.word(wanted)?;
        read(&word).ok_or_else(|| self.not(Some(&word), wanted))
    }

    /// The next word, if it is such a thing.
    pub(super) fn maybe<T>(&mut self, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = read(self.peek()?)?;
        self.words.pop_front();
        Some(found)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Read<T> {
        self.read("a number", |word| word.parse().ok())
    }

    pub(super) fn span(&mut self) -> Read<Span> {
        self.read("a time such as 100ms, 30s, 5min or 20h", span)
    }

    pub(super) fn names(&mut self) -> Read<Vec<String>> {
        self.read("records such as r1, r1..r9 or r1,r4", names)
    }

    pub(super) fn place(&mut self) -> Read<Place> {
        self.read("a partition such as t-0", place)
    }
}

pub(super) fn span(word: &str) -> Option<Span> {
    let unit = word.find(|c: char| !c.is_ascii_digit())?;
    let count: u64 = word[..unit].parse().ok()?;
    let factor = match &word[unit..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    count.checked_mul(factor).map(Span::from_micros)
}

pub(super) fn place(word: &str) -> Option<Place> {
    let (topic, partition) = word.rsplit_once('-')?;
    let partition = partition.parse().ok()?;
    (!topic.is_empty()).then(|| Place { topic: topic.to_owned(), partition })
}

/// Records that one word may name.
const MOST: u32 = 100_000;

/// `r1`, `r1..r9`, `r1,r4`.
pub(super) fn names(word: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for part in word.split(',') {
        match part.split_once("..") {
            None if is_name(part) => all.push(part.to_owned()),
            None => return None,
            Some((from, to)) => {
                let (stem, from) = numbered(from)?;
                let (other, to) = numbered(to)?;
                if stem != other || from > to || to - from >= MOST {
                    return None;
                }
                all.extend((from..=to).map(|number| format!("{stem}{number}")));
            }
        }
    }
    Some(all)
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '\''))
}

fn numbered(word: &str) -> Option<(&str, u32)> {
    let at = word.rfind(|c: char| !c.is_ascii_digit())?;
    let (stem, number) = word.split_at(at + word[at..].chars().next()?.len_utf8());
    Some((stem, number.parse().ok()?)).filter(|_| is_name(word))
}

/// Several records in few letters: `r1..r9`.
pub(super) fn briefly(names: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < names.len() {
        let mut end = at;
        while let (Some(here), Some(next)) = (names.get(end), names.get(end + 1))
            && follows(here, next)
        {
            end += 1;
        }
        match end - at {
            0 => parts.push(names[at].clone()),
            1 => parts.extend([names[at].clone(), names[end].clone()]),
            _ => parts.push(format!("{}..{}", names[at], names[end])),
        }
        at = end + 1;
    }
    parts.join(",")
}

fn follows(here: &str, next: &str) -> bool {
    match (numbered(here), numbered(next)) {
        (Some((stem, one)), Some((other, two))) => stem == other && two == one + 1,
        (Some(_) | None, _) => false,
    }
}

/// `[0-9]`, `[5]`: first and last sequence.
pub(super) fn range(word: &str) -> Option<(i32, i32)> {
    let inside = word.strip_prefix('[')?.strip_suffix(']')?;
    let (first, last) = inside.split_once('-').unwrap_or((inside, inside));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_space_but_not_in_quotes() {
        let mut words = Words::split(3, r#"in A err 87 records 3 "no key"  # as it should"#);
        let all: Vec<String> = std::iter::from_fn(|| words.word("a word").ok()).collect();
        assert_eq!(all, ["in", "A", "err", "87", "records", "3", "no key"]);
        assert_eq!(
            words.word("more").unwrap_err().to_string(),
            "line 3: expected more, but the line ends"
        );
    }

    #[test]
    fn names_come_alone_in_ranges_and_in_lists() {
        assert_eq!(names("r1..r3,x").unwrap(), ["r1", "r2", "r3", "x"]);
        assert_eq!(names("r3..r1"), None);
        assert_eq!(names("r1..s2"), None);
        assert_eq!(names("r1..r4000000000"), None, "a promise is not believed");
        assert_eq!(briefly(&names("r1..r3,x,r9").unwrap()), "r1..r3,x,r9");
        assert_eq!(briefly(&names("r1,r2").unwrap()), "r1,r2");
    }

    #[test]
    fn times_places_and_ranges() {
        assert_eq!(span("100ms"), Some(Span::from_millis(100)));
        assert_eq!(span("5min"), Some(Span::from_secs(300)));
        assert_eq!(span("5"), None);
        assert_eq!(place("my-topic-7").unwrap().to_string(), "my-topic-7");
        assert_eq!(range("[2147483640-11]"), Some((2_147_483_640, 11)));
        assert_eq!(range("[5]"), Some((5, 5)));
        assert_eq!(range("5"), None);
    }
}
