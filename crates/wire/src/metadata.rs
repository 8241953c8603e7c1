//! Metadata (key 3), versions 1 to 13: brokers, topics and leaders.

use bytes::{BufMut, Bytes, BytesMut};
use candor_core::LeaderEpoch;
use nom::Parser;

use crate::error::{DecodeError, EncodeError, Malformed};
use crate::error_code::ErrorCode;
use crate::frame::{self, RequestHeader};
use crate::list::{List, list, sealed};
use crate::names::{NodeId, TopicId};
use crate::read::{
    Input, Parsed, bad, boolean, count, int16, int32, no_tags, nullable_text, since, take, text,
    whole,
};
use crate::versions::{Api, METADATA_BY_ID};
use crate::write::{
    check_text, put_count, put_no_tags, put_null_count, put_nullable_text, put_text,
};

/// Asks for brokers, and for topics with their leaders.
///
/// ```
/// use candor_wire::{RequestHeader, metadata::{Request, Topics}};
/// let request = Request { topics: Topics::Names(&["orders"]), allow_auto_topic_creation: false };
/// let header = RequestHeader { correlation_id: 5, client_id: None };
/// assert!(request.encode(13, &header).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Which topics.
    pub topics: Topics<'a>,
    /// Whether the broker may create the topics that do not exist; sent since version 4, before
    /// that brokers do as they are configured.
    pub allow_auto_topic_creation: bool,
}

/// The topics that a Metadata request asks for.
///
/// ```
/// use candor_wire::metadata::Topics;
/// assert_ne!(Topics::All, Topics::Names(&[]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics<'a> {
    /// Every topic of the cluster.
    All,
    /// These; an empty list asks for brokers only.
    Names(&'a [&'a str]),
    /// These, by id; since version 12.
    Ids(&'a [TopicId]),
}

impl Request<'_> {
    /// The whole frame.
    ///
    /// # Errors
    ///
    /// The version is not supported or cannot ask by id, or a name is too long.
    pub fn encode(&self, version: i16, header: &RequestHeader<'_>) -> Result<Bytes, EncodeError> {
        match self.topics {
            Topics::Names(names) => names.iter().try_for_each(|n| check_text("topic name", n))?,
            Topics::Ids(_) if version < METADATA_BY_ID => {
                return Err(EncodeError::TopicForm { version });
            }
            Topics::All | Topics::Ids(_) => {}
        }
        frame::request(Api::Metadata, version, header, |out| self.put(version, out))
    }

    fn put(&self, version: i16, out: &mut BytesMut) {
        let flexible = Api::Metadata.flexible(version);
        match self.topics {
            Topics::All => put_null_count(out, flexible),
            Topics::Names(names) => {
                put_count(out, flexible, names.len());
                for name in names {
                    if version >= 10 {
                        out.put_slice(&[0; TopicId::SIZE]);
                    }
                    put_text(out, flexible, name);
                    put_no_tags(out, flexible);
                }
            }
            Topics::Ids(ids) => {
                put_count(out, flexible, ids.len());
                for id in ids {
                    out.put_slice(&id.bytes());
                    put_nullable_text(out, flexible, None);
                    put_no_tags(out, flexible);
                }
            }
        }
        if version >= 4 {
            out.put_u8(self.allow_auto_topic_creation.into());
        }
        // Nobody asks for authorized operations: cluster (8 to 10), topic (8 and up).
        if (8..=10).contains(&version) {
            out.put_u8(0);
        }
        if version >= 8 {
            out.put_u8(0);
        }
        put_no_tags(out, flexible);
    }
}

/// Brokers, and topics with their leaders. Authorized operations are skipped.
///
/// ```
/// let body = [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0];
/// let response = candor_wire::metadata::Response::decode(1, &body).unwrap();
/// assert_eq!((response.controller, response.brokers.len()), (None, 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// How long the broker wants no requests, in milliseconds.
    pub throttle_ms: i32,
    /// The living brokers.
    pub brokers: List<'a, Broker<'a>>,
    /// Id of the cluster, since version 2.
    pub cluster_id: Option<&'a str>,
    /// The controller, if it is known.
    pub controller: Option<NodeId>,
    /// The topics that were asked for.
    pub topics: List<'a, TopicInfo<'a>>,
    /// Error of the whole response, since version 13: REBOOTSTRAP_REQUIRED (KIP-1102).
    pub error: ErrorCode,
}

/// Where a broker can be reached.
///
/// ```
/// use candor_wire::{NodeId, metadata::Broker};
/// let node = NodeId::new(1).unwrap();
/// let broker = Broker { node, host: "kafka-1", port: 9092, rack: None };
/// assert_eq!(broker.port, 9092);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broker<'a> {
    /// Its id.
    pub node: NodeId,
    /// Host name or address.
    pub host: &'a str,
    /// Port.
    pub port: u16,
    /// Rack, if the broker has one.
    pub rack: Option<&'a str>,
}

/// One topic.
///
/// ```
/// use candor_wire::{ErrorCode, List, metadata::TopicInfo};
/// let missing = TopicInfo {
///     error: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
///     name: Some("orders"),
///     id: None,
///     is_internal: false,
///     partitions: List::default(),
/// };
/// assert!(!missing.error.is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicInfo<'a> {
    /// Why there is no more to tell, or NONE.
    pub error: ErrorCode,
    /// Its name; `None` only if it was asked for by an id that the broker does not know.
    pub name: Option<&'a str>,
    /// Its id, since version 10.
    pub id: Option<TopicId>,
    /// Whether it is Kafka's own.
    pub is_internal: bool,
    /// Its partitions, in the broker's order.
    pub partitions: List<'a, Partition<'a>>,
}

/// One partition.
///
/// ```
/// use candor_wire::metadata::Partition;
/// fn ready(partition: &Partition<'_>) -> bool {
///     partition.leader.is_some()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition<'a> {
    /// Its error, which says nothing about other partitions.
    pub error: ErrorCode,
    /// Its index.
    pub index: i32,
    /// Its leader, if there is one.
    pub leader: Option<NodeId>,
    /// Epoch of that leader, since version 7; reliable since version 9.
    pub leader_epoch: LeaderEpoch,
    /// All replicas.
    pub replicas: Nodes<'a>,
    /// The replicas in sync.
    pub in_sync: Nodes<'a>,
    /// The replicas that are offline, since version 5.
    pub offline: Nodes<'a>,
}

/// A list of node ids that stays in the bytes it came in.
///
/// ```
/// # use candor_wire::metadata::Nodes;
/// assert_eq!(Nodes::default().iter().count(), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes<'a>(&'a [u8]);

impl Nodes<'_> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.0.len() / 4
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ids, in the broker's order.
    pub fn iter(&self) -> impl Iterator<Item = i32> {
        self.0.as_chunks::<4>().0.iter().map(|bytes| i32::from_be_bytes(*bytes))
    }
}

impl<'a> Response<'a> {
    /// Reads the body of a response of `version`.
    ///
    /// # Errors
    ///
    /// The body is malformed or has bytes left over.
    pub fn decode(version: i16, body: &'a [u8]) -> Result<Self, DecodeError> {
        whole(Api::Metadata, version, body, |input| response(version, input))
    }
}

/// Cluster operations exist in versions 8 to 10 only, topic operations since 8.
fn response(version: i16, input: Input<'_>) -> Parsed<'_, Response<'_>> {
    let flexible = Api::Metadata.flexible(version);
    let (input, throttle_ms) = since(version >= 3, 0, int32)(input)?;
    let (input, brokers) = brokers(flexible)(input)?;
    let (input, cluster_id) = since(version >= 2, None, nullable_text(flexible))(input)?;
    let (input, controller) = int32(input)?;
    let (input, topics) = list(flexible, 9, version, |i| topic(version, i))(input)?;
    let (input, _) = since((8..=10).contains(&version), 0, int32)(input)?;
    let (input, error) = since(version >= 13, 0, int16)(input)?;
    let (input, ()) = no_tags(flexible)(input)?;
    let controller = NodeId::new(controller);
    let error = ErrorCode(error);
    Ok((input, Response { throttle_ms, brokers, cluster_id, controller, topics, error }))
}

/// Brokers' addresses, as Metadata and the node endpoints of Produce have them.
pub(crate) fn brokers<'a>(
    flexible: bool,
) -> impl FnMut(Input<'a>) -> Parsed<'a, List<'a, Broker<'a>>> {
    list(flexible, 11, flexible.into(), move |input| broker(flexible, input))
}

/// The layout of a broker is 1 in flexible versions.
impl<'a> sealed::Read<'a> for Broker<'a> {
    fn read(layout: i16, input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        broker(layout == 1, input).ok().map(|(rest, broker)| (broker, rest))
    }
}

impl<'a> sealed::Read<'a> for TopicInfo<'a> {
    fn read(layout: i16, input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        topic(layout, input).ok().map(|(rest, topic)| (topic, rest))
    }
}

impl<'a> sealed::Read<'a> for Partition<'a> {
    fn read(layout: i16, input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        partition(layout, input).ok().map(|(rest, partition)| (partition, rest))
    }
}

fn broker(flexible: bool, input: Input<'_>) -> Parsed<'_, Broker<'_>> {
    let (rest, (node, host, port, rack, ())) =
        (int32, text(flexible), int32, nullable_text(flexible), no_tags(flexible)).parse(input)?;
    match (NodeId::new(node), u16::try_from(port)) {
        (Some(node), Ok(port)) => Ok((rest, Broker { node, host, port, rack })),
        (None, _) | (_, Err(_)) => bad(input, Malformed::OutOfRange),
    }
}

/// A topic id; all zero is none.
pub(crate) fn topic_id(input: Input<'_>) -> Parsed<'_, Option<TopicId>> {
    let (rest, bytes) = take(TopicId::SIZE)(input)?;
    Ok((rest, bytes.first_chunk().and_then(|bytes| TopicId::new(*bytes))))
}

fn topic(version: i16, input: Input<'_>) -> Parsed<'_, TopicInfo<'_>> {
    let flexible = Api::Metadata.flexible(version);
    let (input, error) = int16(input)?;
    let (input, name) = if version >= 12 {
        nullable_text(flexible)(input)?
    } else {
        text(flexible).map(Some).parse(input)?
    };
    let (input, id) = since(version >= 10, None, topic_id)(input)?;
    let (input, is_internal) = boolean(input)?;
    let (input, partitions) = list(flexible, 18, version, |i| partition(version, i))(input)?;
    let (input, _) = since(version >= 8, 0, int32)(input)?;
    let (input, ()) = no_tags(flexible)(input)?;
    Ok((input, TopicInfo { error: ErrorCode(error), name, id, is_internal, partitions }))
}

fn partition(version: i16, input: Input<'_>) -> Parsed<'_, Partition<'_>> {
    let flexible = Api::Metadata.flexible(version);
    let (input, error) = int16(input)?;
    let (input, index) = int32(input)?;
    let (input, leader) = int32(input)?;
    let (input, leader_epoch) = since(version >= 7, -1, int32)(input)?;
    let (input, replicas) = nodes(flexible)(input)?;
    let (input, in_sync) = nodes(flexible)(input)?;
    let (input, offline) = since(version >= 5, Nodes::default(), nodes(flexible))(input)?;
    let (input, ()) = no_tags(flexible)(input)?;
    let partition = Partition {
        error: ErrorCode(error),
        index,
        leader: NodeId::new(leader),
        leader_epoch: LeaderEpoch(leader_epoch),
        replicas,
        in_sync,
        offline,
    };
    Ok((input, partition))
}

fn nodes<'a>(flexible: bool) -> impl FnMut(Input<'a>) -> Parsed<'a, Nodes<'a>> {
    move |input| {
        let (input, count) = count(flexible, 4)(input)?;
        take(count * 4).map(Nodes).parse(input)
    }
}
