//! Why a configuration is refused, and what to do about it.

use std::fmt;

use crate::address::BadAddress;

/// A configuration that cannot work.
///
/// ```
/// use candor_proto::{Config, ConfigError};
/// let error = Config::from_properties([("acks", "1")]).unwrap_err();
/// assert!(matches!(error, ConfigError::Unsupported { .. }));
/// assert!(error.to_string().contains("acks=all"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No bootstrap address.
    NoBootstrap,
    /// A bootstrap address that is none.
    Address(BadAddress),
    /// A key that no Kafka client of ours knows.
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key given twice.
    Repeated {
        /// The key.
        key: String,
    },
    /// A known key with a value that this producer does not do.
    Unsupported {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What to do.
        advice: &'static str,
    },
    /// A value of the wrong form.
    Malformed {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The form it should have.
        expected: &'static str,
    },
    /// A setting outside its range, or in conflict with another.
    OutOfRange {
        /// The builder's name of the setting.
        setting: &'static str,
        /// What is wrong and what to do.
        problem: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBootstrap => {
                f.write_str("bootstrap.servers is missing: name at least one broker as host:port")
            }
            Self::Address(error) => write!(f, "bootstrap.servers: {error}"),
            Self::UnknownKey { key } => write!(f, "{key} is unknown: remove it or correct it"),
            Self::Repeated { key } => write!(f, "{key} is given twice: keep one"),
            Self::Unsupported { key, value, advice } => {
                write!(f, "{key}={value} is not supported: {advice}")
            }
            Self::Malformed { key, value, expected } => {
                write!(f, "{key}={value}: the value must be {expected}")
            }
            Self::OutOfRange { setting, problem } => write!(f, "{setting} {problem}"),
        }
    }
}

impl std::error::Error for ConfigError {}
