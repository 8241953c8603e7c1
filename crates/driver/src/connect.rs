//! Waiting for the first broker.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use candor_proto::{Address, Config, ConfigError, ErrorCode, Fault, Notice};
use futures_core::Stream;

use crate::notices::Notices;
use crate::shared::Shared;

/// Why `connect` gave up.
///
/// ```
/// use candor_driver::{Config, ConnectError, Fault, Loss};
/// let address = "localhost:9092".parse().unwrap();
/// let error = ConnectError::Unreachable { address, why: Fault::Lost(Loss::Refused) };
/// assert_eq!(
///     error.to_string(),
///     "no bootstrap broker answers; the last one, localhost:9092: the connection was refused"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The configuration cannot work.
    Config(ConfigError),
    /// Every bootstrap address failed once.
    Unreachable {
        /// The last one of them.
        address: Address,
        /// What happened there.
        why: Fault,
    },
    /// A broker answers, but gives no producer id, for a reason that does not pass.
    NoProducerId(ErrorCode),
    /// The driver future or its runtime ended.
    DriverGone,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Unreachable { address, why } => {
                write!(f, "no bootstrap broker answers; the last one, {address}: {why}")
            }
            Self::NoProducerId(code) => write!(f, "the broker gives no producer id: {code}"),
            Self::DriverGone => f.write_str("the driver future or its runtime ended"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Ends when a producer id is there, or nobody can give one.
pub(crate) struct Connect {
    shared: Arc<Shared>,
    notices: Notices,
    untried: BTreeSet<Address>,
}

impl Connect {
    pub(crate) fn new(shared: &Arc<Shared>, config: &Config) -> Self {
        let untried = config.addresses().into_iter().flatten().collect();
        let notices = Notices::new(Arc::clone(shared));
        shared.enter(|state, now| state.machine.prepare(now));
        Self { shared: Arc::clone(shared), notices, untried }
    }

    /// What a notice means for us.
    fn hear(&mut self, notice: Notice) -> Result<(), ConnectError> {
        match notice {
            Notice::ConnectionFailed { address, why } => {
                self.untried.remove(&address);
                if self.untried.is_empty() {
                    return Err(ConnectError::Unreachable { address, why });
                }
                Ok(())
            }
            Notice::NoProducerId { code } if self.shared.conduct.is_final(code) => {
                Err(ConnectError::NoProducerId(code))
            }
            // A broker that has just started answers COORDINATOR_LOAD_IN_PROGRESS: it is asked again.
            Notice::NoProducerId { .. } => Ok(()),
            Notice::Partition { .. }
            | Notice::TopicRefused { .. }
            | Notice::TopicRecreated { .. } => Ok(()),
        }
    }
}

impl Future for Connect {
    type Output = Result<(), ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.shared.enter(|state, _| state.poll_prepared(cx)) {
            return Poll::Ready(Ok(()));
        }
        loop {
            match Pin::new(&mut self.notices).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Err(ConnectError::DriverGone)),
                Poll::Ready(Some(notice)) => {
                    if let Err(error) = self.hear(notice) {
                        return Poll::Ready(Err(error));
                    }
                }
            }
        }
    }
}
