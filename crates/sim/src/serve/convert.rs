//! From the bytes of a records field to the batch that the model judges.

use bytes::Bytes;

use crate::broker::{Batch as Judged, Flaw, Stamps};
use crate::codec::{Batch, BatchError, BatchHeader, Record};

/// Reads a records field as a broker does, in the order of [`Flaw`]. The records of compressed
/// batches stay closed: for those the header's largest timestamp stands for all, and keys are
/// taken to be there.
pub(super) fn judged(records: &Bytes) -> Judged<Bytes> {
    let batch = match Batch::parse_unchecked(records.clone()) {
        Ok(batch) => batch,
        Err(BatchError::Magic(magic)) => return flawed(records, Flaw::Magic(magic)),
        Err(_) => return flawed(records, Flaw::CutShort),
    };
    let parsed = match batch.header.codec() {
        0 => batch.records().map(Some),
        _ => Ok(None),
    };
    let flaw = flaw(&batch, records.len(), parsed.is_err());
    let read = parsed.ok().flatten();
    let stamps = match &read {
        Some(all) => stamps(all),
        None => Stamps::Same(batch.header.max_timestamp),
    };
    let keyless = (0..)
        .zip(read.iter().flatten())
        .filter(|(_, record)| record.key.is_none())
        .map(|(place, _)| place)
        .collect();
    let BatchHeader { producer_id, producer_epoch, base_sequence, count, attributes, .. } =
        batch.header;
    Judged {
        attributes,
        bytes: i32::try_from(records.len()).unwrap_or(i32::MAX),
        stamps,
        keyless,
        flaw,
        ..Judged::new(producer_id, producer_epoch, base_sequence, count, 0, batch.bytes)
    }
}

fn flawed(records: &Bytes, flaw: Flaw) -> Judged<Bytes> {
    Judged { flaw: Some(flaw), ..Judged::new(-1, -1, -1, 1, 0, records.clone()) }
}

/// What a broker meets first.
fn flaw(batch: &Batch, field: usize, unreadable: bool) -> Option<Flaw> {
    let BatchHeader { base_offset, last_offset_delta, count, .. } = batch.header;
    if batch.bytes.len() < field {
        return Some(Flaw::TwoBatches);
    }
    if base_offset != 0 {
        return Some(Flaw::BaseOffset(base_offset));
    }
    if Batch::parse(batch.bytes.clone()).is_err() {
        return Some(Flaw::BadCrc);
    }
    if i64::from(last_offset_delta) != i64::from(count) - 1 {
        return Some(Flaw::LastOffsetDelta(last_offset_delta));
    }
    unreadable.then_some(Flaw::BadRecord)
}

fn stamps(records: &[Record]) -> Stamps {
    match records {
        [] => Stamps::Same(-1),
        [first, rest @ ..] if rest.iter().all(|one| one.timestamp == first.timestamp) => {
            Stamps::Same(first.timestamp)
        }
        all => Stamps::Each(all.iter().map(|one| one.timestamp).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::BatchBuilder;

    fn of(builder: BatchBuilder) -> Judged<Bytes> {
        judged(&builder.build().into())
    }

    #[test]
    fn a_sound_batch_keeps_its_numbers() {
        let built = BatchBuilder::new(7, 3, 10)
            .record(Record::new(5, Some(b"k"), None))
            .record(Record::new(9, None, None));
        let batch = of(built);
        assert_eq!((batch.pid, batch.epoch, batch.first, batch.count), (7, 3, 10, 2));
        assert_eq!((batch.stamps, batch.keyless), (Stamps::Each(vec![5, 9]), vec![1]));
        assert_eq!(batch.flaw, None);
        assert_eq!(batch.bytes as usize, batch.content.len());
    }

    #[test]
    fn flaws_are_found_in_the_brokers_order() {
        let sound = || BatchBuilder::new(7, 0, 0).records(2, 5, b"v");
        let bytes = sound().build();
        let flaw = |bytes: &[u8]| judged(&Bytes::copy_from_slice(bytes)).flaw;
        assert_eq!(flaw(&bytes[..bytes.len() - 3]), Some(Flaw::CutShort));
        assert_eq!(flaw(&[]), Some(Flaw::CutShort));
        assert_eq!(flaw(&[&bytes[..], &bytes[..]].concat()), Some(Flaw::TwoBatches));
        assert_eq!(of(sound().base_offset(5)).flaw, Some(Flaw::BaseOffset(5)));
        assert_eq!(of(sound().claim(3, 1)).flaw, Some(Flaw::LastOffsetDelta(1)));
        assert_eq!(of(sound().claim(3, 2)).flaw, Some(Flaw::BadRecord));
        let mut spoiled = bytes.clone();
        spoiled[17] ^= 1;
        assert_eq!(flaw(&spoiled), Some(Flaw::BadCrc));
        let mut magic = bytes;
        magic[16] = 1;
        assert_eq!(flaw(&magic), Some(Flaw::Magic(1)));
    }

    #[test]
    fn compressed_batches_are_judged_by_their_header() {
        let batch = of(BatchBuilder::new(7, 0, 0).attributes(2).records(2, 5, b"v"));
        assert_eq!((batch.flaw, batch.stamps, batch.attributes), (None, Stamps::Same(5), 2));
    }
}
