//! Fetch, versions 4 to 12, ListOffsets 1 to 7 and FindCoordinator 0 to 6: as much as a
//! consumer that assigns its own partitions needs. Sessions are refused by handing out none.

use bytes::Bytes;

use super::bytes::{Malformed, Reader, Writer};

/// A Fetch request. Isolation, sessions and racks are read and not kept.
///
/// ```
/// use candor_sim::codec::FetchRequest;
/// let idle = FetchRequest { max_wait_ms: 500, min_bytes: 1, topics: vec![] };
/// assert!(!idle.encode(12).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// How long the broker may wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// How much makes an answer worth it.
    pub min_bytes: i32,
    /// Topics by name, with their partitions.
    pub topics: Vec<(String, Vec<FetchPartition>)>,
}

/// One partition of a Fetch request.
///
/// ```
/// use candor_sim::codec::FetchPartition;
/// let start = FetchPartition { index: 0, offset: 0, max_bytes: 1 << 20 };
/// assert_eq!(start.offset, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// Which partition.
    pub index: i32,
    /// From which offset on.
    pub offset: i64,
    /// At most so many bytes, but always one batch.
    pub max_bytes: i32,
}

impl FetchRequest {
    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let _replica = r.i32()?;
        let max_wait_ms = r.i32()?;
        let min_bytes = r.i32()?;
        let _max_bytes = r.i32()?;
        let _isolation = r.i8()?;
        if version >= 7 {
            let _session = (r.i32()?, r.i32()?);
        }
        let topics = r.array(|r| {
            let name = r.string()?;
            let partitions = r.array(|r| FetchPartition::read(r, version))?;
            r.skip_tags()?;
            Ok((name, partitions))
        })?;
        if version >= 7 {
            let _forgotten = r.array(|r| {
                let _name = r.string()?;
                let _partitions = r.array(Reader::i32)?;
                r.skip_tags()
            })?;
        }
        if version >= 11 {
            let _rack = r.string()?;
        }
        r.skip_tags()?;
        Ok(Self { max_wait_ms, min_bytes, topics })
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 12);
        w.i32(-1);
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(i32::MAX);
        w.i8(0);
        if version >= 7 {
            w.i32(0);
            w.i32(-1);
        }
        w.array(&self.topics, |w, (name, partitions)| {
            w.string(name);
            w.array(partitions, |w, one| one.write(w, version));
            w.no_tags();
        });
        if version >= 7 {
            w.array(&[], |_, (): &()| ());
        }
        if version >= 11 {
            w.string("");
        }
        w.no_tags();
        w.into_bytes()
    }
}

impl FetchPartition {
    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let index = r.i32()?;
        if version >= 9 {
            let _leader_epoch = r.i32()?;
        }
        let offset = r.i64()?;
        if version >= 12 {
            let _last_fetched_epoch = r.i32()?;
        }
        if version >= 5 {
            let _log_start = r.i64()?;
        }
        let max_bytes = r.i32()?;
        r.skip_tags()?;
        Ok(Self { index, offset, max_bytes })
    }

    fn write(&self, w: &mut Writer, version: i16) {
        w.i32(self.index);
        if version >= 9 {
            w.i32(-1);
        }
        w.i64(self.offset);
        if version >= 12 {
            w.i32(-1);
        }
        if version >= 5 {
            w.i64(-1);
        }
        w.i32(self.max_bytes);
        w.no_tags();
    }
}

/// A Fetch response.
///
/// ```
/// use candor_sim::codec::FetchResponse;
/// assert!(!FetchResponse::default().encode(4).is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchResponse {
    /// Topics by name, with their answers.
    pub topics: Vec<(String, Vec<FetchedPartition>)>,
}

/// The answer for one partition.
///
/// ```
/// use candor_sim::codec::FetchedPartition;
/// let empty = FetchedPartition {
///     index: 0, error: 0, high_watermark: 0, log_start: 0, records: Default::default(),
/// };
/// assert!(empty.records.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedPartition {
    /// Which partition.
    pub index: i32,
    /// 0 or why not.
    pub error: i16,
    /// The end of what is replicated.
    pub high_watermark: i64,
    /// The first offset.
    pub log_start: i64,
    /// Whole batches, see [`super::batches`].
    pub records: Bytes,
}

impl FetchResponse {
    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 12);
        w.i32(0);
        if version >= 7 {
            w.i16(0);
            w.i32(0);
        }
        w.array(&self.topics, |w, (name, partitions)| {
            w.string(name);
            w.array(partitions, |w, one| {
                w.i32(one.index);
                w.i16(one.error);
                w.i64(one.high_watermark);
                w.i64(one.high_watermark);
                if version >= 5 {
                    w.i64(one.log_start);
                }
                w.nullable_array::<()>(None, |_, ()| ());
                if version >= 11 {
                    w.i32(-1);
                }
                w.nullable_bytes(Some(&one.records));
                w.no_tags();
            });
            w.no_tags();
        });
        w.no_tags();
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let _throttle = r.i32()?;
        if version >= 7 {
            let _error = r.i16()?;
            let _session = r.i32()?;
        }
        let topics = r.array(|r| {
            let name = r.string()?;
            let partitions = r.array(|r| FetchedPartition::read(r, version))?;
            r.skip_tags()?;
            Ok((name, partitions))
        })?;
        r.skip_tags()?;
        Ok(Self { topics })
    }
}

impl FetchedPartition {
    fn read(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let index = r.i32()?;
        let error = r.i16()?;
        let high_watermark = r.i64()?;
        let _last_stable = r.i64()?;
        let log_start = if version >= 5 { r.i64()? } else { -1 };
        let _aborted = r.nullable_array(|r| {
            let _transaction = (r.i64()?, r.i64()?);
            r.skip_tags()
        })?;
        if version >= 11 {
            let _preferred_replica = r.i32()?;
        }
        let records = r.nullable_bytes()?.unwrap_or_default();
        r.skip_tags()?;
        Ok(Self { index, error, high_watermark, log_start, records })
    }
}

/// A ListOffsets request: per topic the partitions and the timestamps to look for.
///
/// ```
/// use candor_sim::codec::{LATEST, ListOffsetsRequest};
/// let end = ListOffsetsRequest { topics: vec![("t".into(), vec![(0, LATEST)])] };
/// assert!(!end.encode(7).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOffsetsRequest {
    /// Topics, each with pairs of partition and timestamp.
    pub topics: Vec<(String, Vec<(i32, i64)>)>,
}

/// The timestamp that asks for the end of the log.
pub const LATEST: i64 = -1;
/// The timestamp that asks for the start of the log.
pub const EARLIEST: i64 = -2;

impl ListOffsetsRequest {
    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let _replica = r.i32()?;
        if version >= 2 {
            let _isolation = r.i8()?;
        }
        let topics = r.array(|r| {
            let name = r.string()?;
            let partitions = r.array(|r| {
                let index = r.i32()?;
                if version >= 4 {
                    let _leader_epoch = r.i32()?;
                }
                let timestamp = r.i64()?;
                r.skip_tags()?;
                Ok((index, timestamp))
            })?;
            r.skip_tags()?;
            Ok((name, partitions))
        })?;
        r.skip_tags()?;
        Ok(Self { topics })
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 6);
        w.i32(-1);
        if version >= 2 {
            w.i8(0);
        }
        w.array(&self.topics, |w, (name, partitions)| {
            w.string(name);
            w.array(partitions, |w, (index, timestamp)| {
                w.i32(*index);
                if version >= 4 {
                    w.i32(-1);
                }
                w.i64(*timestamp);
                w.no_tags();
            });
            w.no_tags();
        });
        w.no_tags();
        w.into_bytes()
    }
}

/// A ListOffsets response.
///
/// ```
/// use candor_sim::codec::ListOffsetsResponse;
/// assert_eq!(ListOffsetsResponse::default().encode(1), [0, 0, 0, 0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOffsetsResponse {
    /// Topics with their answers.
    pub topics: Vec<(String, Vec<ListedOffset>)>,
}

/// The answer for one partition.
///
/// ```
/// use candor_sim::codec::ListedOffset;
/// let end = ListedOffset { index: 0, error: 0, offset: 12, leader_epoch: 0 };
/// assert_eq!(end.offset, 12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// Which partition.
    pub index: i32,
    /// 0 or why not.
    pub error: i16,
    /// The offset, or -1.
    pub offset: i64,
    /// The epoch of the leader that says so, from version 4.
    pub leader_epoch: i32,
}

impl ListOffsetsResponse {
    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 6);
        if version >= 2 {
            w.i32(0);
        }
        w.array(&self.topics, |w, (name, partitions)| {
            w.string(name);
            w.array(partitions, |w, one| {
                w.i32(one.index);
                w.i16(one.error);
                w.i64(-1);
                w.i64(one.offset);
                if version >= 4 {
                    w.i32(one.leader_epoch);
                }
                w.no_tags();
            });
            w.no_tags();
        });
        w.no_tags();
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        if version >= 2 {
            let _throttle = r.i32()?;
        }
        let topics = r.array(|r| {
            let name = r.string()?;
            let partitions = r.array(|r| {
                let (index, error, _timestamp) = (r.i32()?, r.i16()?, r.i64()?);
                let offset = r.i64()?;
                let leader_epoch = if version >= 4 { r.i32()? } else { -1 };
                r.skip_tags()?;
                Ok(ListedOffset { index, error, offset, leader_epoch })
            })?;
            r.skip_tags()?;
            Ok((name, partitions))
        })?;
        r.skip_tags()?;
        Ok(Self { topics })
    }
}

/// A FindCoordinator request; this cluster has no coordinators and says so.
///
/// ```
/// use candor_sim::codec::FindCoordinatorRequest;
/// let group = FindCoordinatorRequest { keys: vec!["g".into()] };
/// assert_eq!(group.keys.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindCoordinatorRequest {
    /// The groups or transactional ids.
    pub keys: Vec<String>,
}

impl FindCoordinatorRequest {
    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let mut keys = Vec::new();
        if version <= 3 {
            keys.push(r.string()?);
        }
        if version >= 1 {
            let _kind = r.i8()?;
        }
        if version >= 4 {
            keys = r.array(Reader::string)?;
        }
        r.skip_tags()?;
        Ok(Self { keys })
    }

    /// The body of the answer: the same error for every key.
    pub fn refuse(&self, version: i16, error: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 3);
        let nobody = |w: &mut Writer| {
            w.i32(-1);
            w.string("");
            w.i32(-1);
        };
        if version >= 1 {
            w.i32(0);
        }
        if version <= 3 {
            w.i16(error);
            if version >= 1 {
                w.nullable_string(None);
            }
            nobody(&mut w);
        } else {
            w.array(&self.keys, |w, key| {
                w.string(key);
                nobody(w);
                w.i16(error);
                w.nullable_string(None);
                w.no_tags();
            });
        }
        w.no_tags();
        w.into_bytes()
    }
}
