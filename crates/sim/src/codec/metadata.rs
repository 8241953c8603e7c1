//! Metadata, versions 0 to 13. Flexible from 9, topic ids from 10.

use super::bytes::{Malformed, Reader, Uuid, Writer};
use super::produce::Endpoint;

/// What the broker says of authorized operations when it was not asked.
const NOT_ASKED: i32 = i32::MIN;

/// A Metadata request.
///
/// ```
/// use candor_sim::codec::MetadataRequest;
/// let all = MetadataRequest { topics: None, allow_auto_topic_creation: true };
/// assert_eq!(all.encode(9), [0, 1, 0, 0, 0]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequest {
    /// The topics to tell of; `None` for all of them.
    pub topics: Option<Vec<MetadataQuery>>,
    /// Whether topics that do not exist may be created; always before version 4.
    pub allow_auto_topic_creation: bool,
}

/// One topic that is asked for: by name, or by id from version 10.
///
/// ```
/// use candor_sim::codec::MetadataQuery;
/// let by_name = MetadataQuery { id: [0; 16], name: Some("t".into()) };
/// assert!(by_name.name.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataQuery {
    /// All zero if asked by name.
    pub id: Uuid,
    /// `None` if asked by id.
    pub name: Option<String>,
}

impl MetadataRequest {
    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let topics = r.nullable_array(|r| {
            let id = if version >= 10 { r.uuid()? } else { [0; 16] };
            let name = if version >= 10 { r.nullable_string()? } else { Some(r.string()?) };
            r.skip_tags()?;
            Ok(MetadataQuery { id, name })
        })?;
        // Version 0 had no null: an empty list asks for everything.
        let topics = topics.filter(|all| version > 0 || !all.is_empty());
        let allow_auto_topic_creation = version < 4 || r.bool()?;
        if (8..=10).contains(&version) {
            let _cluster_operations = r.bool()?;
        }
        if version >= 8 {
            let _topic_operations = r.bool()?;
        }
        r.skip_tags()?;
        Ok(Self { topics, allow_auto_topic_creation })
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 9);
        w.nullable_array(self.topics.as_deref(), |w, topic| {
            if version >= 10 {
                w.uuid(&topic.id);
            }
            w.nullable_string(topic.name.as_deref());
            w.no_tags();
        });
        if version >= 4 {
            w.bool(self.allow_auto_topic_creation);
        }
        if (8..=10).contains(&version) {
            w.bool(false);
        }
        if version >= 8 {
            w.bool(false);
        }
        w.no_tags();
        w.into_bytes()
    }
}

/// A Metadata response.
///
/// ```
/// use candor_sim::codec::{MetadataResponse, Reader};
/// let empty = MetadataResponse { controller: 1, ..Default::default() };
/// let bytes = empty.encode(12);
/// assert_eq!(MetadataResponse::decode(&mut Reader::new(bytes.into(), true), 12), Ok(empty));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataResponse {
    /// The brokers that are alive.
    pub brokers: Vec<Endpoint>,
    /// The cluster's id, from version 2.
    pub cluster_id: Option<String>,
    /// The controller, from version 1.
    pub controller: i32,
    /// Topics.
    pub topics: Vec<MetadataTopic>,
    /// An error of the whole, from version 13.
    pub error: i16,
}

/// One topic of a Metadata response.
///
/// ```
/// use candor_sim::codec::MetadataTopic;
/// let gone = MetadataTopic { error: 3, name: Some("t".into()), id: [0; 16], partitions: vec![] };
/// assert_eq!(gone.error, 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataTopic {
    /// 0 or why there is nothing.
    pub error: i16,
    /// Its name; `None` if an unknown id was asked for.
    pub name: Option<String>,
    /// Its id, from version 10.
    pub id: Uuid,
    /// Its partitions.
    pub partitions: Vec<MetadataPartition>,
}

/// One partition of a Metadata response.
///
/// ```
/// use candor_sim::codec::MetadataPartition;
/// let led = MetadataPartition {
///     error: 0, index: 0, leader: 1, leader_epoch: 4, replicas: vec![1], isr: vec![1],
///     offline: vec![],
/// };
/// assert_eq!(led.leader, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataPartition {
    /// 0, or 5 without a leader.
    pub error: i16,
    /// Which partition.
    pub index: i32,
    /// The leader or -1.
    pub leader: i32,
    /// Its epoch, from version 7.
    pub leader_epoch: i32,
    /// All replicas.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub isr: Vec<i32>,
    /// Those that are down, from version 5.
    pub offline: Vec<i32>,
}

impl MetadataPartition {
    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let one = Self {
            error: r.i16()?,
            index: r.i32()?,
            leader: r.i32()?,
            leader_epoch: if version >= 7 { r.i32()? } else { -1 },
            replicas: r.array(Reader::i32)?,
            isr: r.array(Reader::i32)?,
            offline: if version >= 5 { r.array(Reader::i32)? } else { Vec::new() },
        };
        r.skip_tags()?;
        Ok(one)
    }

    fn write(&self, w: &mut Writer, version: i16) {
        let node = |w: &mut Writer, node: &i32| w.i32(*node);
        w.i16(self.error);
        w.i32(self.index);
        w.i32(self.leader);
        if version >= 7 {
            w.i32(self.leader_epoch);
        }
        w.array(&self.replicas, node);
        w.array(&self.isr, node);
        if version >= 5 {
            w.array(&self.offline, node);
        }
        w.no_tags();
    }
}

impl MetadataTopic {
    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let error = r.i16()?;
        let name = if version >= 12 { r.nullable_string()? } else { Some(r.string()?) };
        let id = if version >= 10 { r.uuid()? } else { [0; 16] };
        if version >= 1 {
            let _internal = r.bool()?;
        }
        let partitions = r.array(|r| MetadataPartition::read(r, version))?;
        if version >= 8 {
            let _operations = r.i32()?;
        }
        r.skip_tags()?;
        Ok(Self { error, name, id, partitions })
    }

    fn write(&self, w: &mut Writer, version: i16) {
        w.i16(self.error);
        match version {
            12.. => w.nullable_string(self.name.as_deref()),
            _ => w.string(self.name.as_deref().unwrap_or_default()),
        }
        if version >= 10 {
            w.uuid(&self.id);
        }
        if version >= 1 {
            w.bool(false);
        }
        w.array(&self.partitions, |w, one| one.write(w, version));
        if version >= 8 {
            w.i32(NOT_ASKED);
        }
        w.no_tags();
    }
}

impl MetadataResponse {
    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 9);
        if version >= 3 {
            w.i32(0);
        }
        w.array(&self.brokers, |w, one| {
            if version >= 1 {
                return one.write(w);
            }
            w.i32(one.node);
            w.string(&one.host);
            w.i32(one.port);
        });
        if version >= 2 {
            w.nullable_string(self.cluster_id.as_deref());
        }
        if version >= 1 {
            w.i32(self.controller);
        }
        w.array(&self.topics, |w, one| one.write(w, version));
        if (8..=10).contains(&version) {
            w.i32(NOT_ASKED);
        }
        if version >= 13 {
            w.i16(self.error);
        }
        w.no_tags();
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        if version >= 3 {
            let _throttle = r.i32()?;
        }
        let brokers = r.array(|r| {
            if version >= 1 {
                return Endpoint::read(r);
            }
            Ok(Endpoint { node: r.i32()?, host: r.string()?, port: r.i32()?, rack: None })
        })?;
        let cluster_id = if version >= 2 { r.nullable_string()? } else { None };
        let controller = if version >= 1 { r.i32()? } else { -1 };
        let topics = r.array(|r| MetadataTopic::read(r, version))?;
        if (8..=10).contains(&version) {
            let _operations = r.i32()?;
        }
        let error = if version >= 13 { r.i16()? } else { 0 };
        r.skip_tags()?;
        Ok(Self { brokers, cluster_id, controller, topics, error })
    }
}
