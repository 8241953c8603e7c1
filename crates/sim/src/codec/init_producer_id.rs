//! InitProducerId, versions 0 to 6. Flexible from 2.

use super::bytes::{Malformed, Reader, Writer};

/// An InitProducerId request.
///
/// ```
/// use candor_sim::codec::InitProducerIdRequest;
/// let idempotent = InitProducerIdRequest::idempotent();
/// assert_eq!((idempotent.producer_id, idempotent.producer_epoch), (-1, -1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProducerIdRequest {
    /// The transactional id, null for an idempotent producer.
    pub transactional_id: Option<String>,
    /// The transaction timeout.
    pub transaction_timeout_ms: i32,
    /// The id held so far, or -1; from version 3.
    pub producer_id: i64,
    /// The epoch held so far, or -1; from version 3.
    pub producer_epoch: i16,
}

impl InitProducerIdRequest {
    /// What an idempotent producer asks.
    pub fn idempotent() -> Self {
        Self {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id: -1,
            producer_epoch: -1,
        }
    }

    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let request = Self {
            transactional_id: r.nullable_string()?,
            transaction_timeout_ms: r.i32()?,
            producer_id: if version >= 3 { r.i64()? } else { -1 },
            producer_epoch: if version >= 3 { r.i16()? } else { -1 },
        };
        if version >= 6 {
            let _two_phase = r.bool()?;
            let _keep_prepared = r.bool()?;
        }
        r.skip_tags()?;
        Ok(request)
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 2);
        w.nullable_string(self.transactional_id.as_deref());
        w.i32(self.transaction_timeout_ms);
        if version >= 3 {
            w.i64(self.producer_id);
            w.i16(self.producer_epoch);
        }
        if version >= 6 {
            w.bool(false);
            w.bool(false);
        }
        w.no_tags();
        w.into_bytes()
    }
}

/// An InitProducerId response.
///
/// ```
/// use candor_sim::codec::InitProducerIdResponse;
/// assert_eq!(InitProducerIdResponse::refused(42).encode(1).len(), 16);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitProducerIdResponse {
    /// 0 or why not.
    pub error: i16,
    /// The new id, or -1.
    pub producer_id: i64,
    /// The first epoch, or -1.
    pub producer_epoch: i16,
}

impl InitProducerIdResponse {
    /// No id, with this code.
    pub const fn refused(error: i16) -> Self {
        Self { error, producer_id: -1, producer_epoch: -1 }
    }

    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 2);
        w.i32(0);
        w.i16(self.error);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        if version >= 6 {
            w.i64(-1);
            w.i16(-1);
        }
        w.no_tags();
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let _throttle = r.i32()?;
        let response = Self { error: r.i16()?, producer_id: r.i64()?, producer_epoch: r.i16()? };
        if version >= 6 {
            let _ongoing_id = r.i64()?;
            let _ongoing_epoch = r.i16()?;
        }
        r.skip_tags()?;
        Ok(response)
    }
}
