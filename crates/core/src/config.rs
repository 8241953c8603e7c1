//! What a lane can be told once.

use crate::time::Span;

/// Settings of one lane. The defaults are those of the producer.
///
/// ```
/// use candor_core::{LaneConfig, Span};
/// let config = LaneConfig { linger: Span::ZERO, ..LaneConfig::default() };
/// assert_eq!(config.batch_size, 256 * 1024);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneConfig {
    /// How long a batch waits for more records (`linger.ms`). Default 5 ms.
    pub linger: Span,
    /// Size at which a batch is full, in bytes (`batch.size`). Default 256 KiB. One record is
    /// always accepted.
    pub batch_size: usize,
    /// First time between two attempts (`retry.backoff.ms`). Default 100 ms.
    pub backoff: Span,
    /// Longest time between two attempts (`retry.backoff.max.ms`). Default 1 s.
    pub backoff_max: Span,
    /// Seed of the jitter of the backoff; `None` switches jitter off. Default `None`.
    pub jitter: Option<u64>,
    /// How long brokers are relied upon to remember a producer (rule S20); must stay below their
    /// `producer.id.expiration.ms`. Default 20 h.
    pub state_ttl: Span,
    /// What happens after a `DataLoss` notice. Default: go on.
    pub on_data_loss: OnDataLoss,
    /// What happens to what is in doubt when the broker may have forgotten us. Default: nothing
    /// is resent.
    pub beyond_memory: BeyondMemory,
    /// Whether `base_offset = -1` beside 3 and 6 proves "not appended" (rule H1; holds on Apache
    /// Kafka 3.9 to 4.4). Default `false`.
    pub trust_base_offset: bool,
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self {
            linger: Span::from_millis(5),
            batch_size: 256 * 1024,
            backoff: Span::from_millis(100),
            backoff_max: Span::from_secs(1),
            jitter: None,
            state_ttl: Span::from_secs(20 * 3600),
            on_data_loss: OnDataLoss::Continue,
            beyond_memory: BeyondMemory::Keep,
            trust_base_offset: false,
        }
    }
}

/// The user's policy after a `DataLoss` notice.
///
/// ```
/// assert_eq!(candor_core::OnDataLoss::default(), candor_core::OnDataLoss::Continue);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDataLoss {
    /// Go on with the next epoch.
    #[default]
    Continue,
    /// Stop the partition; later appends to it are refused.
    Stop,
}

/// What happens to what is in doubt once the broker may have forgotten us.
///
/// ```
/// assert_eq!(candor_core::BeyondMemory::default(), candor_core::BeyondMemory::Keep);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BeyondMemory {
    /// It is not resent, and ends `Never(Expired)`.
    #[default]
    Keep,
    /// It is resent and may be written twice; for backfills of old timestamps.
    Resend,
}
