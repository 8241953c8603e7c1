//! Topics and nodes: names and numbers that the wire has and core does not.

use core::fmt;

/// A topic's id (KIP-516): 16 bytes, never all zero, which means "none" on the wire.
///
/// ```
/// use candor_wire::TopicId;
/// assert_eq!(TopicId::new([0; 16]), None);
/// let id = TopicId::new([0xab; 16]).unwrap();
/// assert_eq!(id.to_string(), "abababab-abab-abab-abab-abababababab");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId([u8; 16]);

impl TopicId {
    /// How many bytes it takes.
    pub const SIZE: usize = 16;

    /// The id, unless it is all zero.
    pub const fn new(bytes: [u8; 16]) -> Option<Self> {
        if u128::from_be_bytes(bytes) == 0 { None } else { Some(Self(bytes)) }
    }

    /// The bytes on the wire.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A topic as a Produce request or response names it: by name up to version 12, by id from 13 on.
///
/// ```
/// use candor_wire::Topic;
/// assert_eq!(Topic::Name("orders").to_string(), "orders");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic<'a> {
    /// By name.
    Name(&'a str),
    /// By id.
    Id(TopicId),
}

impl fmt::Display for Topic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// A broker's id: `0..=i32::MAX`.
///
/// ```
/// use candor_wire::NodeId;
/// assert_eq!(NodeId::new(-1), None);
/// assert_eq!(NodeId::new(3).map(NodeId::get), Some(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(i32);

impl NodeId {
    /// The id, unless it is negative (which means "none" on the wire).
    pub const fn new(id: i32) -> Option<Self> {
        if id < 0 { None } else { Some(Self(id)) }
    }

    /// The number on the wire.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The longest topic name, in bytes.
pub const MAX_TOPIC_NAME: usize = 249;

/// Why a topic name is not one.
///
/// ```
/// use candor_wire::{InvalidTopicName, check_topic_name};
/// assert_eq!(check_topic_name("a b"), Err(InvalidTopicName::Character(' ')));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTopicName {
    /// It has no characters.
    Empty,
    /// It has so many bytes, and 249 are allowed.
    TooLong(usize),
    /// It is `.` or `..`.
    Dots,
    /// It has a character outside `[a-zA-Z0-9._-]`.
    Character(char),
}

impl fmt::Display for InvalidTopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the topic name is empty"),
            Self::TooLong(bytes) => {
                write!(f, "the topic name has {bytes} bytes, {MAX_TOPIC_NAME} are allowed")
            }
            Self::Dots => f.write_str("a topic cannot be named \".\" or \"..\""),
            Self::Character(character) => write!(
                f,
                "the topic name has the character {character:?}, only a-z A-Z 0-9 . _ - are allowed"
            ),
        }
    }
}

impl core::error::Error for InvalidTopicName {}

/// Checks a topic name by the broker's rules (Kafka's class `Topic`), so that no request is made
/// for a topic that cannot exist.
///
/// # Errors
///
/// What is wrong with the name.
///
/// ```
/// use candor_wire::{InvalidTopicName, check_topic_name};
/// assert_eq!(check_topic_name("orders.eu-1_v2"), Ok(()));
/// assert_eq!(check_topic_name(".."), Err(InvalidTopicName::Dots));
/// assert_eq!(check_topic_name(&"a".repeat(250)), Err(InvalidTopicName::TooLong(250)));
/// ```
pub fn check_topic_name(name: &str) -> Result<(), InvalidTopicName> {
    match name {
        "" => return Err(InvalidTopicName::Empty),
        "." | ".." => return Err(InvalidTopicName::Dots),
        _ if name.len() > MAX_TOPIC_NAME => return Err(InvalidTopicName::TooLong(name.len())),
        _ => {}
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match name.chars().find(|&c| !allowed(c)) {
        Some(character) => Err(InvalidTopicName::Character(character)),
        None => Ok(()),
    }
}
