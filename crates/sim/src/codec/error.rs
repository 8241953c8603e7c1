//! The error codes that the simulator itself gives. The model broker has its own list of those
//! that partitions answer with.

/// The topic or partition does not exist here.
pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
/// A fetch beyond the ends of the log.
pub const OFFSET_OUT_OF_RANGE: i16 = 1;
/// A batch whose checksum is wrong.
pub const CORRUPT_MESSAGE: i16 = 2;
/// A partition without a leader.
pub const LEADER_NOT_AVAILABLE: i16 = 5;
/// Another broker leads.
pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
/// A topic name that cannot be.
pub const INVALID_TOPIC: i16 = 17;
/// No coordinator: this cluster has none.
pub const COORDINATOR_NOT_AVAILABLE: i16 = 15;
/// Acks other than -1, 0 and 1.
pub const INVALID_REQUIRED_ACKS: i16 = 21;
/// A version that the broker does not serve.
pub const UNSUPPORTED_VERSION: i16 = 35;
/// A request that contradicts itself.
pub const INVALID_REQUEST: i16 = 42;
/// A transactional batch without a transactional id.
pub const TRANSACTIONAL_ID_AUTHORIZATION_FAILED: i16 = 53;
/// A batch that is not well formed.
pub const INVALID_RECORD: i16 = 87;
/// A topic id that does not exist here.
pub const UNKNOWN_TOPIC_ID: i16 = 100;
