//! Between the machine's words and those of broker and judge.

use candor_core::testing::Preset;
use candor_core::{
    Answer as CoreAnswer, BeyondMemory, Identity, LaneConfig, Offset, PartitionResponse,
    ProducerEpoch, ProducerId, Sequence, Span,
};

use crate::broker::{ACKS_ALL, Answer, Batch, Call, Partition};
use crate::judge::{LogIs, Settings};

use super::super::flight::Content;
use super::super::scope::Scope;
use super::{FIRST_ID, LEADER, START};

pub(super) fn preset(partition: &mut Partition<Content>, epoch: i16, next: i32) -> Option<Preset> {
    let first = next.checked_sub(1).unwrap_or(i32::MAX);
    let stamp = START.as_millis();
    let call = Call { node: LEADER, now: stamp, acks: ACKS_ALL, version: 12 };
    // Its answer is of no interest: it commits as soon as the follower has it.
    let _ = partition.produce(call, &Batch::new(FIRST_ID, epoch, first, 1, stamp, 0));
    partition.settle(stamp);
    let identity = Identity { id: ProducerId::new(FIRST_ID)?, epoch: ProducerEpoch::new(epoch)? };
    Some(Preset { identity, next: Sequence::new(next)?, last_acknowledged: Offset::new(0)? })
}

pub(super) fn lane_config(scope: &Scope) -> LaneConfig {
    LaneConfig {
        linger: Span::from_millis(scope.linger_ms),
        batch_size: scope.batch_size,
        backoff: Span::from_millis(scope.backoff_ms),
        backoff_max: Span::from_millis(scope.backoff_ms),
        jitter: None,
        state_ttl: Span::from_millis(scope.state_ttl_ms),
        on_data_loss: scope.on_data_loss,
        beyond_memory: scope.beyond_memory,
        trust_base_offset: scope.trust_base_offset,
    }
}

pub(super) fn settings(scope: &Scope) -> Settings {
    Settings {
        state_ttl: match scope.beyond_memory {
            BeyondMemory::Keep if scope.is_ageless() => None,
            BeyondMemory::Keep => Some(scope.state_ttl_ms * 1_000),
            BeyondMemory::Resend => None,
        },
        timestamps_count: !scope.log_append_time,
        trust_base_offset: scope.trust_base_offset,
        backoff: scope.backoff_ms * 1_000,
        log: LogIs::Live,
        first_sequence: scope.preset.map_or(0, |(_, next)| i64::from(next)),
        origin: 0,
        ..Settings::default()
    }
}

pub(super) fn core_answer(answer: Answer) -> CoreAnswer {
    CoreAnswer::Response(PartitionResponse {
        error_code: answer.code,
        base_offset: answer.base_offset,
        log_append_time: answer.log_append_time,
        log_start_offset: answer.log_start_offset,
        record_errors: answer.record_errors.iter().filter_map(|i| u32::try_from(*i).ok()).collect(),
    })
}
