//! Time is an argument. Nothing in this crate can read a clock.

/// Microseconds since the Unix epoch, always handed in (rule D1).
///
/// ```
/// use candor_core::{Instant, Span};
/// let now = Instant::from_millis(1_000);
/// assert_eq!((now + Span::from_millis(5)).as_micros(), 1_005_000);
/// assert_eq!(now.since(Instant::from_millis(2_000)), Span::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(u64);

/// A length of time in microseconds.
///
/// ```
/// use candor_core::Span;
/// assert_eq!(Span::from_secs(2).half(), Span::from_millis(1_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything.
    pub const FOREVER: Self = Self(u64::MAX);

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// So many seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// In microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// In whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Half of it.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// Between four and six fifths of it, as the hash says: jitter without chance.
    ///
    /// ```
    /// use candor_core::Span;
    /// let wait = Span::from_micros(10);
    /// assert_eq!([0, 4].map(|hash| wait.spread(hash).as_micros()), [8, 12]);
    /// ```
    #[must_use]
    pub const fn spread(self, hash: u64) -> Self {
        let fifth = self.0 / 5;
        Self((self.0 - fifth).saturating_add(hash % (2 * fifth + 1)))
    }

    /// So many times as long; stays at the longest.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Instant {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);
    /// After everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// So many microseconds after the Unix epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// So many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds since the Unix epoch, as record timestamps count.
    pub const fn as_millis(self) -> i64 {
        (self.0 / 1_000) as i64
    }

    /// How long ago `earlier` was; nothing if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// When the machine wants to be polled again, at the latest, and for what.
///
/// ```
/// use candor_core::{Deadline, Instant, Wakeup};
/// let d = Deadline { at: Instant::from_millis(5), why: Wakeup::Linger };
/// assert!(d.at > Instant::EPOCH);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline {
    /// Poll no later than this.
    pub at: Instant,
    /// What is due then.
    pub why: Wakeup,
}

/// What a [`Deadline`] is for.
///
/// ```
/// assert_ne!(candor_core::Wakeup::Linger, candor_core::Wakeup::Backoff);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wakeup {
    /// A record's own deadline.
    Verdict,
    /// An open batch has waited long enough (linger, or half of a record's time; rule D2).
    Linger,
    /// A batch may be offered again (rule L3).
    Backoff,
    /// What is in doubt can no longer be resent (rule S20).
    Memory,
    /// The close deadline (rule D5).
    Close,
    /// A request has waited too long for its answer.
    RequestTimeout,
    /// Metadata is to be refreshed.
    Metadata,
    /// A connection may be tried again, or has been idle too long.
    Connection,
    /// The broker asked us to keep silent until then (KIP-219).
    Throttle,
}
