//! Why a connection ended.

use core::fmt;

use candor_wire::{Api, DecodeError, ErrorCode, FrameError};

/// Why a connection ended, or was given up. What was open on it and may have been handed over is in
/// doubt, nothing more.
///
/// ```
/// use candor_proto::{Fault, Loss};
/// assert!(Fault::Lost(Loss::Refused).to_string().contains("refused"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The driver lost it.
    Lost(Loss),
    /// Connecting and greeting took too long.
    ConnectTimeout,
    /// An answer took too long.
    RequestTimeout,
    /// What came is no Kafka frame.
    Frame(FrameError),
    /// An answer is malformed.
    Malformed(DecodeError),
    /// An answer came although nothing was asked.
    Unasked,
    /// An answer came out of turn.
    Correlation {
        /// Of the request whose turn it was.
        expected: i32,
        /// Of the answer.
        got: i32,
    },
    /// An answer contradicts itself, or speaks of what was not asked.
    Contradiction,
    /// The broker is too old or too new.
    NoCommonVersion(Api),
    /// The broker refused the greeting.
    Refused(ErrorCode),
    /// The broker belongs to another cluster than the one we started with.
    ForeignCluster,
    /// The broker wants us to start again from the bootstrap addresses (KIP-1102).
    Rebootstrap,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(loss) => loss.fmt(f),
            Self::ConnectTimeout => f.write_str("connecting and greeting took too long"),
            Self::RequestTimeout => f.write_str("an answer took too long"),
            Self::Frame(error) => error.fmt(f),
            Self::Malformed(error) => error.fmt(f),
            Self::Unasked => f.write_str("an answer came although nothing was asked"),
            Self::Correlation { expected, got } => {
                write!(f, "an answer came out of turn: {got} instead of {expected}")
            }
            Self::Contradiction => f.write_str("an answer contradicts itself or its request"),
            Self::NoCommonVersion(api) => {
                write!(f, "no version of {api} in common: upgrade the older side")
            }
            Self::Refused(code) => write!(f, "the broker refused the greeting: {code}"),
            Self::ForeignCluster => {
                f.write_str("the broker belongs to another cluster: correct bootstrap.servers")
            }
            Self::Rebootstrap => f.write_str("the broker asks to start again from bootstrap"),
        }
    }
}

impl std::error::Error for Fault {}

/// How the driver lost a connection, or could not make it.
///
/// ```
/// assert_ne!(candor_proto::Loss::Ended, candor_proto::Loss::Broken);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The name has no address.
    Unresolved,
    /// Nobody listens there, or it cannot be reached.
    Refused,
    /// The broker closed it in order.
    Ended,
    /// It broke.
    Broken,
    /// We asked for it with `Disconnect`.
    Asked,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unresolved => "the name has no address",
            Self::Refused => "the connection was refused",
            Self::Ended => "the broker closed the connection",
            Self::Broken => "the connection broke",
            Self::Asked => "the connection was closed",
        })
    }
}
