//! Which version of which API to use on a connection (rule S17).

use candor_wire::{
    Api, PRODUCE_BY_ID, PRODUCE_BY_NAME, api_versions, negotiate, negotiate_at_most,
};

use crate::fault::Fault;

/// What was agreed with a broker; learned anew on every connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) metadata: i16,
    pub(crate) init_producer_id: i16,
    /// Produce with topics by name.
    pub(crate) produce_by_name: Option<i16>,
    /// Produce with topics by id, where offered.
    pub(crate) produce_by_id: Option<i16>,
}

impl Versions {
    /// The highest versions that both sides speak.
    pub(crate) fn agree(response: &api_versions::Response<'_>) -> Result<Self, Fault> {
        let agreed = |api| {
            let range = response.range(api).ok_or(Fault::NoCommonVersion(api))?;
            negotiate(api, range).ok_or(Fault::NoCommonVersion(api))
        };
        let produce = agreed(Api::Produce)?;
        let by_name = response
            .range(Api::Produce)
            .and_then(|range| negotiate_at_most(Api::Produce, range, PRODUCE_BY_NAME));
        Ok(Self {
            metadata: agreed(Api::Metadata)?,
            init_producer_id: agreed(Api::InitProducerId)?,
            produce_by_name: by_name,
            produce_by_id: (produce >= PRODUCE_BY_ID).then_some(produce),
        })
    }
}
