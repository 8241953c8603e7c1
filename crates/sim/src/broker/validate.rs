//! Steps 1 and 4 of the append: what is refused for the batch's own sake, before anything that
//! was remembered is looked at.

use super::{Answer, Batch, Config, Flaw, TimestampType, code};

/// Step 1: what is looked at before the partition is.
pub(super) fn shape<C>(batch: &Batch<C>, version: i16) -> Result<(), Answer> {
    if batch.is_transactional() {
        // Transactions are not modelled, so no request has a transactional id.
        return Err(Answer::error(code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED));
    }
    match batch.flaw {
        Some(Flaw::CutShort | Flaw::TwoBatches | Flaw::Magic(_)) => {
            return Err(Answer::error(code::INVALID_RECORD));
        }
        Some(Flaw::BaseOffset(_) | Flaw::BadCrc | Flaw::LastOffsetDelta(_) | Flaw::BadRecord)
        | None => {}
    }
    if batch.is_zstd() && version < 7 {
        return Err(Answer::error(code::UNSUPPORTED_COMPRESSION_TYPE));
    }
    Ok(())
}

/// Step 4: header, size, checksum, then the records.
pub(super) fn content<C>(
    batch: &Batch<C>,
    config: &Config,
    now: i64,
    log_start: i64,
) -> Result<(), Answer> {
    if matches!(batch.flaw, Some(Flaw::BaseOffset(_))) {
        return Err(Answer::error_at(code::INVALID_RECORD, log_start));
    }
    if batch.bytes > config.max_message_bytes {
        return Err(Answer::error(code::MESSAGE_TOO_LARGE));
    }
    if batch.flaw == Some(Flaw::BadCrc) {
        return Err(Answer::error(code::CORRUPT_MESSAGE));
    }
    let broken = match batch.flaw {
        Some(Flaw::LastOffsetDelta(delta)) => i64::from(delta) != i64::from(batch.count) - 1,
        Some(Flaw::BadRecord) => true,
        Some(
            Flaw::CutShort | Flaw::TwoBatches | Flaw::Magic(_) | Flaw::BaseOffset(_) | Flaw::BadCrc,
        )
        | None => false,
    };
    if broken || batch.count <= 0 || batch.is_control() || (batch.pid >= 0 && batch.first < 0) {
        return Err(Answer::error_at(code::INVALID_RECORD, log_start));
    }
    records(batch, config, now, log_start)?;
    if batch.bytes > config.segment_bytes {
        return Err(Answer::error(code::RECORD_LIST_TOO_LARGE));
    }
    Ok(())
}

/// Each record alone; one bad timestamp decides the code for all.
fn records<C>(batch: &Batch<C>, config: &Config, now: i64, log_start: i64) -> Result<(), Answer> {
    let keyless = |index: i32| config.compacted && batch.keyless.contains(&index);
    let mistimed = |index: i32| {
        let stamp = usize::try_from(index).map_or(-1, |index| batch.stamps.at(index));
        config.timestamp_type == TimestampType::CreateTime
            && stamp != -1
            && (now.saturating_sub(stamp) > config.timestamp_before_max_ms
                || stamp.saturating_sub(now) > config.timestamp_after_max_ms)
    };
    let any_limit = config.compacted
        || config.timestamp_before_max_ms != i64::MAX
        || config.timestamp_after_max_ms != i64::MAX;
    if !any_limit {
        return Ok(());
    }
    let record_errors: Vec<i32> =
        (0..batch.count).filter(|i| keyless(*i) || mistimed(*i)).collect();
    if record_errors.is_empty() {
        return Ok(());
    }
    let timed = record_errors.iter().any(|i| !keyless(*i));
    let (code, message) = if timed {
        (code::INVALID_TIMESTAMP, "one or more records have an invalid timestamp")
    } else {
        (code::INVALID_RECORD, "one or more records were refused")
    };
    Err(Answer { record_errors, message: Some(message), ..Answer::error_at(code, log_start) })
}
