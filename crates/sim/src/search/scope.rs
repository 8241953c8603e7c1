//! What may happen in a search: how many records, which faults, how many of them.

use candor_core::{BeyondMemory, OnDataLoss};

use crate::broker::Profile;

/// A record that the caller sends.
///
/// ```
/// use candor_sim::search::Plan;
/// assert_eq!(Plan::LONG.due_ms, 120_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its deadline, in milliseconds after the start.
    pub due_ms: u64,
    /// Its timestamp, in milliseconds before the start.
    pub stamped_ago_ms: i64,
    /// The broker refuses it, and names it (87).
    pub bad: bool,
}

impl Plan {
    /// Two minutes.
    pub const LONG: Self = Self { due_ms: 120_000, stamped_ago_ms: 0, bad: false };
    /// One second.
    pub const SHORT: Self = Self { due_ms: 1_000, ..Self::LONG };
}

/// A code that a broker may be made to give instead of what it would say.
///
/// ```
/// use candor_sim::search::Say;
/// assert_eq!(Say::Before(19).to_string(), "refuses with 19");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Say {
    /// It appends nothing and answers this.
    Before(i16),
    /// It judges and appends as usual, and answers this.
    After(i16),
    /// The same, with `base_offset = -1`.
    AfterBlind(i16),
    /// It says 46 for a sequence that lies below what it expects, where it would say 45.
    Below,
}

impl std::fmt::Display for Say {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Before(code) => write!(f, "refuses with {code}"),
            Self::After(code) => write!(f, "appends if it is due, and answers {code}"),
            Self::AfterBlind(code) => {
                write!(f, "appends if it is due, and answers {code} without an offset")
            }
            Self::Below => f.write_str("calls what lies below 46"),
        }
    }
}

/// Kinds of faults, beside scripted codes. Each occurrence counts against the budget.
///
/// ```
/// assert_ne!(candor_sim::search::Fault::LoseWhole, candor_sim::search::Fault::LoseCut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// A connection is over; its frames may still arrive at any time.
    LoseWhole,
    /// A connection is over; frames not delivered yet were cut, and the driver can prove it.
    LoseCut,
    /// A connection is over; frames not delivered yet are lost, and nobody knows.
    LoseGone,
    /// The other replica is elected, and the old leader knows.
    Elect,
    /// The other replica is elected, and the old leader goes on for a while.
    Depose,
    /// The same leader is elected again: a newer leader epoch, the same connection.
    Reign,
    /// The lane gets another connection to its leader, and the old one goes on.
    Reroute,
    /// A request waits for replication longer than it says: 7.
    Timeout,
    /// Everything that was reported delivered is deleted from the log, for good.
    Purge,
    /// The topic is deleted and made anew.
    Recreate,
    /// Batches of more than one record are too large from now on (10).
    Shrink,
    /// Everything is refused with [`Scope::refusal`] from now on, until somebody lifts it.
    Refuse,
    /// The refusal is lifted.
    Lift,
    /// The producer is out of memory: the lane gives up what is in doubt (L5).
    Shed,
    /// The leader forgets our producer for no reason (A3 is broken: what follows is excused).
    Forget,
    /// The follower lags, so that the leader commits alone.
    Lag,
    /// The other replica is elected although it lags (A2 is broken: what is lost is excused).
    Unclean,
    /// Another partition of the producer loses its identity: nothing that concerns this lane (S9).
    Neighbour,
}

impl Fault {
    /// Whether A2 or A3 does not hold any more: committed batches are lost, or a broker's memory
    /// without its log.
    pub(super) const fn breaks_assumptions(self) -> bool {
        matches!(self, Self::Forget | Self::Lag | Self::Unclean)
    }
}

/// Whether time passes before a quiet phase.
///
/// ```
/// assert_ne!(candor_sim::search::Ticks::Never, candor_sim::search::Ticks::Always);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ticks {
    /// It does not.
    Never,
    /// To the lane's next wakeup, but not over a record's deadline.
    Wakeups,
    /// To whatever the lane wants to be woken for next.
    Always,
    /// To the next deadline of a record, so often.
    Deadlines(u8),
}

/// How long the search of a scope takes.
///
/// ```
/// use candor_sim::search::Size;
/// assert!(Size::Small < Size::Wide && Size::Wide < Size::Night);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Size {
    /// Seconds: every run of the tests.
    Small,
    /// A minute or a few: continuous integration.
    Wide,
    /// Longer.
    Night,
}

/// Everything that bounds a search.
///
/// ```
/// use candor_sim::search::Scope;
/// let scope = Scope { name: "mine", faults: 1, ..Scope::BASE };
/// assert_eq!(scope.records.len(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// How long it takes.
    pub size: Size,
    /// The records, in order.
    pub records: &'static [Plan],
    /// How many of them are sent before anything else happens.
    pub at_once: usize,
    /// Records per batch at most.
    pub batch_size: usize,
    /// One replica, or two.
    pub replicas: usize,
    /// The second replica copies everything at once, so that nothing is appended and lost.
    pub eager: bool,
    /// How many faults there may be.
    pub faults: u8,
    /// Which.
    pub kinds: &'static [Fault],
    /// Which scripted codes, each of which is a fault.
    pub codes: &'static [Say],
    /// The code of [`Fault::Refuse`].
    pub refusal: i16,
    /// How many brokers may restart.
    pub restarts: u8,
    /// Records that the caller may cancel at any time.
    pub cancels: &'static [u64],
    /// Records that the caller may revoke at any time.
    pub revokes: &'static [u64],
    /// The caller may abandon the partition once, at any time.
    pub abandons: bool,
    /// The producer may be closed at any time, with this much time left, in milliseconds.
    pub closes: Option<u64>,
    /// Whether time passes.
    pub ticks: Ticks,
    /// How long a batch waits for more records, in milliseconds.
    pub linger_ms: u64,
    /// The time between two attempts, in milliseconds.
    pub backoff_ms: u64,
    /// The broker says 46 where the sequence lies below what it expects.
    pub says_46: bool,
    /// Which broker.
    pub profile: Profile,
    /// How long the lane relies on the broker's memory, in milliseconds.
    pub state_ttl_ms: u64,
    /// The broker's `producer.id.expiration.ms`; it expires producers at any time after that.
    pub expires_ms: Option<i64>,
    /// Records are stamped by the broker.
    pub log_append_time: bool,
    /// The lane starts with this epoch and next sequence, one record being acknowledged.
    pub preset: Option<(i16, i32)>,
    /// What the lane does beyond the broker's memory.
    pub beyond_memory: BeyondMemory,
    /// What the lane does after data loss.
    pub on_data_loss: OnDataLoss,
    /// Whether `base_offset = -1` proves something.
    pub trust_base_offset: bool,
    /// States are compared as they are, for checks of everything that makes a search smaller.
    pub plain: bool,
    /// What must not happen here, beside what must never happen.
    pub limits: Limits,
}

/// What must not happen in a scope because nothing in it is a reason for it.
///
/// ```
/// use candor_sim::search::{Limits, Scope};
/// assert_eq!(Limits { losses: true, ..Scope::BASE.limits }, Scope::BASE.limits);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// `DataLoss` may be noticed.
    pub alarms: bool,
    /// `Unfenced` may be noticed.
    pub unfenced: bool,
    /// The lane may stop.
    pub stops: bool,
    /// Records with a long deadline that are not bad may fail.
    pub losses: bool,
    /// So many identities may be used; 255: any number.
    pub epochs: u8,
}

const THREE: &[Plan] = &[Plan::SHORT, Plan::LONG, Plan::LONG];

/// Longer than any search: brokers remember for ever, and lanes know it.
pub(super) const FOREVER_MS: u64 = u64::MAX / 1_000_000;

impl Scope {
    /// Whether what brokers remember does not depend on time.
    pub(super) const fn is_ageless(&self) -> bool {
        self.state_ttl_ms >= FOREVER_MS && self.expires_ms.is_none()
    }

    /// Three batches of one record, of which the first has a short deadline; two replicas; no
    /// faults.
    pub const BASE: Self = Self {
        name: "base",
        about: "nothing goes wrong",
        size: Size::Small,
        records: THREE,
        at_once: 3,
        batch_size: 1,
        replicas: 2,
        eager: false,
        faults: 0,
        kinds: &[],
        codes: &[],
        refusal: 29,
        restarts: 0,
        cancels: &[],
        revokes: &[],
        abandons: false,
        closes: None,
        ticks: Ticks::Always,
        linger_ms: 0,
        backoff_ms: 0,
        says_46: false,
        profile: Profile::V4_4,
        state_ttl_ms: 72_000_000,
        expires_ms: None,
        log_append_time: false,
        preset: None,
        beyond_memory: BeyondMemory::Keep,
        on_data_loss: OnDataLoss::Continue,
        trust_base_offset: false,
        plain: false,
        limits: Limits {
            alarms: true,
            unfenced: true,
            stops: false,
            losses: true,
            epochs: u8::MAX,
        },
    };
}
