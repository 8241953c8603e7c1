//! The model broker: partitions, replicas, elections and memory, over raw integers.
//!
//! Everything here is a pure value: no clock (every call is handed `now`, in milliseconds since
//! the Unix epoch, as brokers count), no randomness, no IO. All of it is `Clone + Eq + Hash`, so a
//! search can branch on it and a run can be replayed.
//!
//! * [`Partition`] is one partition with its replicas. A search drives it alone.
//! * [`Cluster`] is nodes, topics, producer ids and requests that wait for replication. Servers and
//!   swarms drive this.
//!
//! # What belongs to others
//!
//! The model judges a request *whenever it is handed one*: it knows no connections. Whoever models
//! the network must keep three facts of real brokers:
//!
//! 1. Requests of one connection are judged one at a time: the next one starts only when the one
//!    before is answered (`Outcome::Wait` included). Nothing is reordered inside a connection.
//! 2. A closed connection kills nothing: frames the broker had received are still judged, in
//!    order, at any later time, also after a newer connection was served. A cut frame never is.
//! 3. An answer to `acks = 0` is never sent; where it would be an error the connection is closed.
//!
//! Sources: `ProducerStateManager`, `ProducerAppendInfo`, `UnifiedLog`, `LogValidator`,
//! `DelayedProduce`, `Partition` of Apache Kafka, and answers measured on 3.9 to 4.4.

mod answer;
mod batch;
mod canon;
mod cluster;
mod fleet;
mod log;
mod node;
mod partition;
mod producers;
mod profile;
mod replica;
mod replication;
mod request;
mod validate;

pub use answer::{Answer, LeaderHint, Outcome, Progress, Wait, code};
pub use batch::{Batch, Flaw, Stamps};
pub(crate) use canon::Names;
pub use cluster::{Cluster, ClusterView, PartitionView, TopicView};
pub use log::{Entry, Record};
pub use node::{NodeId, NodeSet};
pub use partition::{ACKS_ALL, ACKS_LEADER, ACKS_NONE, Call, Partition, Scripted};
pub use producers::{Cached, Known};
pub use profile::{ApiMax, Config, NoState, Profile, TimestampType};
pub use replica::Stop;
pub use replication::{Deposed, Refused};
pub use request::{PartAnswer, ProducePart, ProduceRequest, Reply, RequestId, TopicRef};
