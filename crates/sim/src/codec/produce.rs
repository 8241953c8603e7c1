//! Produce, versions 3 to 13. Flexible from 9, leader hints from 10, topic ids from 13.

use bytes::Bytes;

use super::bytes::{Malformed, Reader, Uuid, Writer};

/// How a topic is named: by its name up to version 12, by its id from 13 on.
///
/// ```
/// use candor_sim::codec::TopicKey;
/// assert_ne!(TopicKey::Name("t".into()), TopicKey::Id([0; 16]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicKey {
    /// By name.
    Name(String),
    /// By id.
    Id(Uuid),
}

impl TopicKey {
    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        match version {
            13.. => r.uuid().map(Self::Id),
            _ => r.string().map(Self::Name),
        }
    }

    fn write(&self, w: &mut Writer) {
        match self {
            Self::Name(name) => w.string(name),
            Self::Id(id) => w.uuid(id),
        }
    }
}

/// A Produce request.
///
/// ```
/// use candor_sim::codec::ProduceRequest;
/// let request = ProduceRequest { acks: -1, timeout_ms: 30_000, ..Default::default() };
/// assert_eq!(request.encode(9), [0, 255, 255, 0, 0, 0x75, 0x30, 1, 0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceRequest {
    /// The transaction's producer, or null.
    pub transactional_id: Option<String>,
    /// -1 all, 1 leader, 0 no answer at all.
    pub acks: i16,
    /// How long the broker waits for replicas after the append.
    pub timeout_ms: i32,
    /// Topics in the client's order, repeated if the client repeated them.
    pub topics: Vec<ProduceTopic>,
}

/// One topic of a Produce request.
///
/// ```
/// use candor_sim::codec::{ProduceTopic, TopicKey};
/// let none = ProduceTopic { key: TopicKey::Name("t".into()), partitions: vec![] };
/// assert!(none.partitions.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceTopic {
    /// Which topic.
    pub key: TopicKey,
    /// Its partitions.
    pub partitions: Vec<ProducePartition>,
}

/// One partition of a Produce request.
///
/// ```
/// use candor_sim::codec::ProducePartition;
/// // Null records are never answered.
/// let stuck = ProducePartition { index: 0, records: None };
/// assert_eq!(stuck.records, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducePartition {
    /// Which partition.
    pub index: i32,
    /// One record batch, if the client is right.
    pub records: Option<Bytes>,
}

impl ProduceRequest {
    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let transactional_id = r.nullable_string()?;
        let acks = r.i16()?;
        let timeout_ms = r.i32()?;
        let topics = r.array(|r| {
            let key = TopicKey::read(r, version)?;
            let partitions = r.array(|r| {
                let partition = ProducePartition { index: r.i32()?, records: r.nullable_bytes()? };
                r.skip_tags()?;
                Ok(partition)
            })?;
            r.skip_tags()?;
            Ok(ProduceTopic { key, partitions })
        })?;
        r.skip_tags()?;
        Ok(Self { transactional_id, acks, timeout_ms, topics })
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 9);
        w.nullable_string(self.transactional_id.as_deref());
        w.i16(self.acks);
        w.i32(self.timeout_ms);
        w.array(&self.topics, |w, topic| {
            topic.key.write(w);
            w.array(&topic.partitions, |w, partition| {
                w.i32(partition.index);
                w.nullable_bytes(partition.records.as_deref());
                w.no_tags();
            });
            w.no_tags();
        });
        w.no_tags();
        w.into_bytes()
    }

    /// Whether a partition comes with null records: such a request is never answered.
    pub fn has_null_records(&self) -> bool {
        self.topics.iter().flat_map(|topic| &topic.partitions).any(|one| one.records.is_none())
    }
}

/// A Produce response.
///
/// ```
/// use candor_sim::codec::ProduceResponse;
/// let mut empty = ProduceResponse::default();
/// empty.throttle_ms = 5;
/// assert_eq!(empty.encode(8), [0, 0, 0, 0, 0, 0, 0, 5]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProduceResponse {
    /// Answers, in the broker's order.
    pub topics: Vec<ProducedTopic>,
    /// How long the client should stay away. Behind the topics, unlike elsewhere.
    pub throttle_ms: i32,
    /// Where the leaders are that the partitions name, from version 10.
    pub endpoints: Vec<Endpoint>,
}

/// One topic of a Produce response.
///
/// ```
/// use candor_sim::codec::{ProducedTopic, TopicKey};
/// let none = ProducedTopic { key: TopicKey::Id([1; 16]), partitions: vec![] };
/// assert!(none.partitions.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedTopic {
    /// Which topic.
    pub key: TopicKey,
    /// Its answers.
    pub partitions: Vec<ProducedPartition>,
}

/// The answer for one partition.
///
/// ```
/// use candor_sim::codec::ProducedPartition;
/// assert_eq!(ProducedPartition::refused(0, 45).base_offset, -1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedPartition {
    /// Which partition.
    pub index: i32,
    /// 0 or why not.
    pub error: i16,
    /// Where the batch stands, -1 if this attempt appended nothing.
    pub base_offset: i64,
    /// Append time in milliseconds, -1 for a fresh batch on a create-time topic.
    pub log_append_time_ms: i64,
    /// First offset of the log, from version 5.
    pub log_start_offset: i64,
    /// Records that are wrong, from version 8.
    pub record_errors: Vec<RecordError>,
    /// A text, from version 8.
    pub error_message: Option<String>,
    /// Who leads instead, from version 10.
    pub leader: Option<LeaderHint>,
}

/// A record that the broker will not have.
///
/// ```
/// use candor_sim::codec::RecordError;
/// let second = RecordError { index: 1, message: None };
/// assert_eq!(second.index, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Its place in the batch, from 0.
    pub index: i32,
    /// A text.
    pub message: Option<String>,
}

/// The leader that a refused partition names (KIP-951).
///
/// ```
/// use candor_sim::codec::LeaderHint;
/// let hint = LeaderHint { node: 2, epoch: 7 };
/// assert_eq!((hint.node, hint.epoch), (2, 7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// The leader.
    pub node: i32,
    /// Its epoch.
    pub epoch: i32,
}

/// Where a node listens.
///
/// ```
/// use candor_sim::codec::Endpoint;
/// let one = Endpoint { node: 1, host: "localhost".into(), port: 9092, rack: None };
/// assert_eq!(one.port, 9092);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id.
    pub node: i32,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: i32,
    /// Rack, if it has one.
    pub rack: Option<String>,
}

impl Endpoint {
    pub(crate) fn read(r: &mut Reader) -> Result<Self, Malformed> {
        let one =
            Self { node: r.i32()?, host: r.string()?, port: r.i32()?, rack: r.nullable_string()? };
        r.skip_tags()?;
        Ok(one)
    }

    pub(crate) fn write(&self, w: &mut Writer) {
        w.i32(self.node);
        w.string(&self.host);
        w.i32(self.port);
        w.nullable_string(self.rack.as_deref());
        w.no_tags();
    }
}

impl ProducedPartition {
    /// Appended, or found in the log, at this offset.
    pub fn appended(index: i32, base_offset: i64) -> Self {
        Self { base_offset, ..Self::refused(index, 0) }
    }

    /// Refused with this code; nothing was appended.
    pub fn refused(index: i32, error: i16) -> Self {
        Self {
            index,
            error,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            leader: None,
        }
    }

    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let mut one = Self::refused(r.i32()?, r.i16()?);
        one.base_offset = r.i64()?;
        one.log_append_time_ms = r.i64()?;
        if version >= 5 {
            one.log_start_offset = r.i64()?;
        }
        if version >= 8 {
            one.record_errors = r.array(|r| {
                let error = RecordError { index: r.i32()?, message: r.nullable_string()? };
                r.skip_tags()?;
                Ok(error)
            })?;
            one.error_message = r.nullable_string()?;
        }
        let leader = &mut one.leader;
        r.tags(|tag, r| {
            if tag == 0 && version >= 10 {
                *leader = Some(LeaderHint { node: r.i32()?, epoch: r.i32()? });
            }
            Ok(())
        })?;
        Ok(one)
    }

    fn write(&self, w: &mut Writer, version: i16) {
        w.i32(self.index);
        w.i16(self.error);
        w.i64(self.base_offset);
        w.i64(self.log_append_time_ms);
        if version >= 5 {
            w.i64(self.log_start_offset);
        }
        if version >= 8 {
            w.array(&self.record_errors, |w, error| {
                w.i32(error.index);
                w.nullable_string(error.message.as_deref());
                w.no_tags();
            });
            w.nullable_string(self.error_message.as_deref());
        }
        w.tags(|tags| {
            if let (Some(leader), 10..) = (self.leader, version) {
                tags.add(0, |w| {
                    w.i32(leader.node);
                    w.i32(leader.epoch);
                    w.no_tags();
                });
            }
        });
    }
}

impl ProduceResponse {
    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 9);
        w.array(&self.topics, |w, topic| {
            topic.key.write(w);
            w.array(&topic.partitions, |w, one| one.write(w, version));
            w.no_tags();
        });
        w.i32(self.throttle_ms);
        w.tags(|tags| {
            if version >= 10 && !self.endpoints.is_empty() {
                tags.add(0, |w| w.array(&self.endpoints, |w, one| one.write(w)));
            }
        });
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let topics = r.array(|r| {
            let key = TopicKey::read(r, version)?;
            let partitions = r.array(|r| ProducedPartition::read(r, version))?;
            r.skip_tags()?;
            Ok(ProducedTopic { key, partitions })
        })?;
        let throttle_ms = r.i32()?;
        let mut endpoints = Vec::new();
        r.tags(|tag, r| {
            if tag == 0 && version >= 10 {
                endpoints = r.array(Endpoint::read)?;
            }
            Ok(())
        })?;
        Ok(Self { topics, throttle_ms, endpoints })
    }
}
