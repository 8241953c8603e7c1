//! Where a broker listens.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Host name or IP address, and port. Resolving names is the driver's business, at every connect
/// anew (a broker's address may change).
///
/// ```
/// use candor_proto::Address;
/// let address: Address = "[::1]:9092".parse().unwrap();
/// assert_eq!((address.host(), address.port()), ("::1", 9092));
/// assert!("localhost".parse::<Address>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: Arc<str>,
    port: u16,
}

impl Address {
    /// The address, unless the host is empty or the port is not in `1..=65535`.
    pub fn new(host: &str, port: i32) -> Option<Self> {
        match u16::try_from(port) {
            Ok(port) if port > 0 && !host.is_empty() => Some(Self { host: host.into(), port }),
            Ok(_) | Err(_) => None,
        }
    }

    /// Host name or IP address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, `1..=65535`.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The text is not `host:port`.
///
/// ```
/// let error = "localhost".parse::<candor_proto::Address>().unwrap_err();
/// assert!(error.to_string().contains("host:port"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no address: write host:port, with a port in 1..=65535", self.0)
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(bad)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(bad());
        }
        let port = port.parse().map_err(|_| bad())?;
        Self::new(bare.unwrap_or(host), port).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_both_families_parse_and_print_alike() {
        for text in ["kafka-1.example:9092", "10.0.0.1:1", "[fe80::1]:65535"] {
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", ":9092", "host", "host:0", "host:65536", "host:x", "::1:9092", "[]:1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
