//! What to tell people, and what they can do next.

use candor_tokio::{ConnectError, NeverReason, Proof, Waiting, Why, WhyNot, WhyRefused};

/// Why a record was not delivered, with what to do about it. The same text for the same cause.
pub(crate) fn why_not(why: &WhyNot) -> String {
    match why {
        WhyNot::Refused(WhyRefused::TooLarge { limit, .. }) => format!(
            "larger than the limit of {limit} bytes, the smaller one of max.request.size and \
             buffer.memory; raise it with --property max.request.size=.. (and max.message.bytes of \
             the topic), or split the line"
        ),
        WhyNot::Proven(Proof::NeverOffered | Proof::NoPartition { .. } | Proof::TakenBack) => {
            format!("{why}; safe to send again")
        }
        WhyNot::Proven(Proof::Rejected { code: 10 }) => {
            format!("{why}; raise max.message.bytes of the topic, or split the line")
        }
        WhyNot::Proven(_)
        | WhyNot::Refused(_)
        | WhyNot::NoRoom
        | WhyNot::Cancelled
        | WhyNot::DriverGone => why.to_string(),
    }
}

/// Why an unknown record stays unknown.
pub(crate) const fn never(reason: NeverReason) -> &'static str {
    match reason {
        NeverReason::Abandoned => "it was given up",
        NeverReason::StateLost => "the broker lost its memory of this producer",
        NeverReason::Expired => "the broker may have forgotten this producer",
        NeverReason::TopicRecreated => "the topic was deleted and made anew",
        NeverReason::MemoryPressure => "memory was needed for other records",
        NeverReason::Refused => "the broker refuses to look at it again",
        NeverReason::Closed => "the command ended before it was found out",
    }
}

/// What a record waits for; nothing if it is over.
pub(crate) fn waiting(topic: &str, waiting: &Waiting) -> Option<String> {
    Some(match waiting {
        Waiting::Gone | Waiting::Partition(Why::Gone) => return None,
        Waiting::Metadata | Waiting::Partition(Why::Metadata) => format!(
            "the partitions of topic {topic}, which no broker has named yet: \
             is the topic there? Create it, or correct --topic"
        ),
        Waiting::NoPartition { partition, partitions } => format!(
            "partition {partition} of topic {topic}, which has {partitions}, counted from 0"
        ),
        Waiting::Throttle { .. } => "the broker, which throttles this client (a quota)".to_owned(),
        Waiting::Connection => "its turn on the connection".to_owned(),
        Waiting::Partition(why) => lane(*why).to_owned(),
    })
}

const fn lane(why: Why) -> &'static str {
    match why {
        Why::Gone => "nothing",
        Why::Metadata => "metadata",
        Why::Leader => "a connection to its partition's leader",
        Why::Identity => "a producer id, which no broker has given yet",
        Why::Linger => "its batch to be filled",
        Why::Queue => "the batches before it",
        Why::Span => "answers: five batches of its partition are unsettled",
        Why::Gate => "the broker to show that it knows this producer",
        Why::Backoff { .. } => "the time between two attempts",
        Why::Hold | Why::Transmit => "its turn on the connection",
        Why::Answer { .. } => "the broker's answer",
        Why::Confirmation { .. } => "metadata that confirms its partition's leader",
        Why::Resolution => "its resolution",
    }
}

/// What to do when there is no connection at all.
pub(crate) fn connect(error: &ConnectError) -> &'static str {
    match error {
        ConnectError::Config(_) => "correct the command line",
        ConnectError::Unreachable { .. } => {
            "is a Kafka broker listening there without TLS? Check --bootstrap-server; \
             nothing was read from the input"
        }
        ConnectError::NoProducerId(_) => "nothing was read from the input; try again later",
        ConnectError::DriverGone => "nothing was read from the input; try again",
    }
}
