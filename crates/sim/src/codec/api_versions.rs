//! ApiVersions, versions 0 to 5. Flexible from 3, but its response header never is.

use super::bytes::{Malformed, Reader, Writer};
use super::request::{API_VERSIONS, VersionRange};

/// An ApiVersions request.
///
/// ```
/// use candor_sim::codec::ApiVersionsRequest;
/// let named = ApiVersionsRequest::named("candor", "0.1.0");
/// assert!(named.is_valid(3));
/// assert!(!ApiVersionsRequest::named("ex p", "1").is_valid(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiVersionsRequest {
    /// The client's name, from version 3.
    pub software_name: String,
    /// The client's version, from version 3.
    pub software_version: String,
    /// The cluster it means to talk to, from version 5.
    pub cluster_id: Option<String>,
    /// The node it means to talk to, or -1, from version 5.
    pub node_id: i32,
}

impl ApiVersionsRequest {
    /// A request by this client, of no cluster in particular.
    pub fn named(name: &str, version: &str) -> Self {
        Self {
            software_name: name.to_owned(),
            software_version: version.to_owned(),
            cluster_id: None,
            node_id: -1,
        }
    }

    /// Whether the broker takes it: names of letters, digits, dots and dashes that begin and end
    /// with a letter or digit, and cluster and node both or neither.
    pub fn is_valid(&self, version: i16) -> bool {
        version < 3
            || (is_software_name(&self.software_name)
                && is_software_name(&self.software_version)
                && self.cluster_id.is_some() == (self.node_id != -1))
    }

    pub(crate) fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let mut request = Self::named("", "");
        if version >= 3 {
            request.software_name = r.string()?;
            request.software_version = r.string()?;
        }
        if version >= 5 {
            request.cluster_id = r.nullable_string()?;
            request.node_id = r.i32()?;
        }
        r.skip_tags()?;
        Ok(request)
    }

    /// The body, as a client writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 3);
        if version >= 3 {
            w.string(&self.software_name);
            w.string(&self.software_version);
        }
        if version >= 5 {
            w.nullable_string(self.cluster_id.as_deref());
            w.i32(self.node_id);
        }
        w.no_tags();
        w.into_bytes()
    }
}

fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}

/// An ApiVersions response.
///
/// ```
/// use candor_sim::codec::ApiVersionsResponse;
/// let unknown = ApiVersionsResponse::fallback(4);
/// assert_eq!(unknown.encode(0), [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    /// 0 or why not.
    pub error: i16,
    /// What the broker says it serves.
    pub apis: Vec<VersionRange>,
    /// Epoch of the finalized features, from version 3; -1 if there are none.
    pub features_epoch: i64,
    /// Finalized features with their levels, from version 3.
    pub features: Vec<(String, i16)>,
}

impl ApiVersionsResponse {
    /// The answer to a version that the broker does not know, to be encoded as version 0: the
    /// error and the one entry that tells what would do (KIP-511).
    pub fn fallback(max: i16) -> Self {
        let apis = vec![VersionRange { api: API_VERSIONS, min: 0, max }];
        Self { error: super::error::UNSUPPORTED_VERSION, apis, ..Self::refused(0) }
    }

    /// An answer without entries.
    pub fn refused(error: i16) -> Self {
        Self { error, apis: Vec::new(), features_epoch: -1, features: Vec::new() }
    }

    /// The body, as a broker writes it.
    pub fn encode(&self, version: i16) -> Vec<u8> {
        let mut w = Writer::new(version >= 3);
        w.i16(self.error);
        w.array(&self.apis, |w, range| {
            w.i16(range.api);
            w.i16(range.min);
            w.i16(range.max);
            w.no_tags();
        });
        if version >= 1 {
            w.i32(0);
        }
        w.tags(|tags| {
            if self.features_epoch >= 0 {
                tags.add(1, |w| w.i64(self.features_epoch));
            }
            if !self.features.is_empty() {
                tags.add(2, |w| {
                    w.array(&self.features, |w, (name, level)| {
                        w.string(name);
                        w.i16(*level);
                        w.i16(*level);
                        w.no_tags();
                    });
                });
            }
        });
        w.into_bytes()
    }

    /// Reads a body, as a client does.
    ///
    /// # Errors
    /// [`Malformed`], what is wrong with the bytes.
    pub fn decode(r: &mut Reader, version: i16) -> Result<Self, Malformed> {
        let mut response = Self::refused(r.i16()?);
        response.apis = r.array(|r| {
            let range = VersionRange { api: r.i16()?, min: r.i16()?, max: r.i16()? };
            r.skip_tags()?;
            Ok(range)
        })?;
        if version >= 1 {
            let _throttle = r.i32()?;
        }
        let Self { features_epoch, features, .. } = &mut response;
        r.tags(|tag, r| {
            match tag {
                1 => *features_epoch = r.i64()?,
                2 => {
                    *features = r.array(|r| {
                        let feature = (r.string()?, r.i16()?);
                        let _min = r.i16()?;
                        r.skip_tags()?;
                        Ok(feature)
                    })?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(response)
    }
}
