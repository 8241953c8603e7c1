//! Which versions a broker advertises, and which it really serves.

use crate::broker::Profile;
use crate::codec::{
    API_VERSIONS, FETCH, FIND_COORDINATOR, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, PRODUCE,
    VersionRange,
};

/// What ApiVersions says. Reading (Fetch, ListOffsets) stops at the versions that go by name.
pub(super) fn advertised(profile: Profile) -> Vec<VersionRange> {
    let max = profile.max_versions();
    let (fetch, list_offsets, find_coordinator) = match profile {
        Profile::V2_4 => (11, 5, 3),
        Profile::V3_9 | Profile::V4_0 | Profile::V4_3 | Profile::V4_4 | Profile::V4_5 => (12, 7, 6),
    };
    vec![
        // Minimum 0 although 4.x closes the connection on 0 to 2 (KAFKA-18659).
        VersionRange { api: PRODUCE, min: 0, max: max.produce },
        VersionRange { api: FETCH, min: 4, max: fetch },
        VersionRange { api: LIST_OFFSETS, min: 1, max: list_offsets },
        VersionRange { api: METADATA, min: 0, max: max.metadata },
        VersionRange { api: FIND_COORDINATOR, min: 0, max: find_coordinator },
        VersionRange { api: API_VERSIONS, min: 0, max: max.api_versions },
        VersionRange { api: INIT_PRODUCER_ID, min: 0, max: max.init_producer_id },
    ]
}

/// What is served: the same, but that Produce begins at 3, where record batches do.
pub(super) fn served(profile: Profile) -> Vec<VersionRange> {
    let mut all = advertised(profile);
    for range in all.iter_mut().filter(|range| range.api == PRODUCE) {
        range.min = 3;
    }
    all
}
