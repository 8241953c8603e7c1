//! The codec against one generated from Kafka's own schemas: every message in every version that
//! both know is read by the other and written back to the same bytes.

#[cfg(test)]
mod tests {
    use bytes::{Buf, Bytes, BytesMut};
    use candor_sim::codec::*;
    use kafka_protocol::messages as theirs;
    use kafka_protocol::protocol::{Decodable, Encodable};

    /// Reads our bytes with the other codec, to the end.
    fn read<T: Decodable>(ours: &[u8], version: i16) -> T {
        let mut bytes = Bytes::copy_from_slice(ours);
        let message = T::decode(&mut bytes, version).unwrap();
        assert_eq!(bytes.remaining(), 0, "version {version}");
        message
    }

    fn written<T: Encodable>(message: &T, version: i16) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes, version).unwrap();
        bytes.to_vec()
    }

    /// Both ways: what we wrote is read by them and written back to the same bytes.
    fn agree<T: Decodable + Encodable>(ours: &[u8], version: i16) -> T {
        let message: T = read(ours, version);
        assert_eq!(written(&message, version), ours, "version {version}");
        message
    }

    fn frame(api: i16, version: i16, body: &[u8]) -> Bytes {
        Bytes::from(RequestHeader::new(api, version, 77).frame(body)).slice(4..)
    }

    fn decoded(api: i16, version: i16, body: &[u8]) -> Request {
        let served = [VersionRange { api, min: 0, max: 99 }];
        let (header, request) = decode_request(frame(api, version, body), &served).unwrap();
        assert_eq!(header, RequestHeader::new(api, version, 77));
        request
    }

    fn reader(bytes: &[u8], api: i16, version: i16) -> Reader {
        Reader::new(Bytes::copy_from_slice(bytes), is_flexible(api, version))
    }

    #[test]
    fn request_headers() {
        use kafka_protocol::messages::{ApiKey, RequestHeader as TheirHeader};
        let apis = [(PRODUCE, 3..=13), (FETCH, 4..=12), (LIST_OFFSETS, 1..=7), (METADATA, 0..=13)];
        let more = [(FIND_COORDINATOR, 0..=6), (API_VERSIONS, 0..=4), (INIT_PRODUCER_ID, 0..=5)];
        for (api, versions) in apis.into_iter().chain(more) {
            for version in versions {
                let key = ApiKey::try_from(api).unwrap();
                let ours = frame(api, version, &[]);
                let header: TheirHeader = agree(&ours, key.request_header_version(version));
                assert_eq!((header.request_api_key, header.request_api_version), (api, version));
                assert_eq!(header.correlation_id, 77);
                let ours = RequestHeader::new(api, version, 77).answer(&[]);
                let answer: theirs::ResponseHeader =
                    agree(&ours[4..], key.response_header_version(version));
                assert_eq!(answer.correlation_id, 77);
            }
        }
    }

    #[test]
    fn produce_requests() {
        let batch = BatchBuilder::new(7, 0, 0).records(2, 5, b"v").build();
        for version in 3..=13 {
            let key = match version {
                13 => TopicKey::Id([9; 16]),
                _ => TopicKey::Name("topic".into()),
            };
            let partitions = vec![
                ProducePartition { index: 3, records: Some(batch.clone().into()) },
                ProducePartition { index: 4, records: None },
            ];
            let ours = ProduceRequest {
                transactional_id: Some("tx".into()),
                acks: -1,
                timeout_ms: 1_234,
                topics: vec![ProduceTopic { key, partitions }],
            };
            let body = ours.encode(version);
            let other: theirs::ProduceRequest = agree(&body, version);
            assert_eq!((other.acks, other.timeout_ms), (-1, 1_234));
            assert_eq!(other.topic_data[0].partition_data[0].index, 3);
            assert_eq!(decoded(PRODUCE, version, &body), Request::Produce(ours));
        }
    }

    fn produced(version: i16) -> ProduceResponse {
        let key = match version {
            13 => TopicKey::Id([9; 16]),
            _ => TopicKey::Name("topic".into()),
        };
        let moved = ProducedPartition {
            leader: (version >= 10).then_some(LeaderHint { node: 2, epoch: 8 }),
            ..ProducedPartition::refused(1, 6)
        };
        let wrong = ProducedPartition {
            record_errors: match version {
                8.. => vec![
                    RecordError { index: 0, message: None },
                    RecordError { index: 4, message: Some("late".into()) },
                ],
                _ => vec![],
            },
            error_message: (version >= 8).then(|| "bad".to_owned()),
            log_start_offset: if version >= 5 { 6 } else { -1 },
            log_append_time_ms: 99,
            ..ProducedPartition::refused(2, 32)
        };
        let partitions = vec![ProducedPartition::appended(0, 41), moved, wrong];
        let endpoint = Endpoint { node: 2, host: "two".into(), port: 9093, rack: Some("r".into()) };
        ProduceResponse {
            topics: vec![ProducedTopic { key, partitions }],
            throttle_ms: 17,
            endpoints: if version >= 10 { vec![endpoint] } else { vec![] },
        }
    }

    #[test]
    fn produce_responses() {
        for version in 3..=13 {
            let ours = produced(version);
            let body = ours.encode(version);
            let other: theirs::ProduceResponse = agree(&body, version);
            let partitions = &other.responses[0].partition_responses;
            assert_eq!((partitions[0].base_offset, partitions[1].error_code), (41, 6));
            assert_eq!((partitions[2].log_append_time_ms, other.throttle_time_ms), (99, 17));
            if version >= 10 {
                let leader = &partitions[1].current_leader;
                assert_eq!((leader.leader_id.0, leader.leader_epoch), (2, 8));
                assert_eq!(other.node_endpoints[0].port, 9093);
            }
            let mut back = reader(&body, PRODUCE, version);
            assert_eq!(ProduceResponse::decode(&mut back, version), Ok(ours));
            assert_eq!(back.finish(), Ok(()));
        }
    }

    #[test]
    fn metadata_both_ways() {
        let partition = MetadataPartition {
            error: 5,
            index: 1,
            leader: 3,
            leader_epoch: 4,
            replicas: vec![1, 2, 3],
            isr: vec![2, 3],
            offline: vec![1],
        };
        for version in 0..=13 {
            let id = if version >= 10 { [7; 16] } else { [0; 16] };
            let query = MetadataQuery { id, name: Some("topic".into()) };
            let request = MetadataRequest {
                topics: Some(vec![query]),
                allow_auto_topic_creation: version < 4,
            };
            let body = request.encode(version);
            let other: theirs::MetadataRequest = agree(&body, version);
            assert_eq!(other.topics.unwrap().len(), 1);
            assert_eq!(decoded(METADATA, version, &body), Request::Metadata(request));

            let mut partition = partition.clone();
            if version < 7 {
                partition.leader_epoch = -1;
            }
            if version < 5 {
                partition.offline.clear();
            }
            let name = Some("topic".to_owned());
            let topics = vec![MetadataTopic { error: 3, name, id, partitions: vec![partition] }];
            let rack = (version >= 1).then(|| "r".to_owned());
            let response = MetadataResponse {
                brokers: vec![Endpoint { node: 1, host: "one".into(), port: 9092, rack }],
                cluster_id: (version >= 2).then(|| "cluster".into()),
                controller: if version >= 1 { 1 } else { -1 },
                topics,
                error: if version >= 13 { 129 } else { 0 },
            };
            let body = response.encode(version);
            let other: theirs::MetadataResponse = agree(&body, version);
            let partition = &other.topics[0].partitions[0];
            assert_eq!((partition.partition_index, partition.leader_id.0), (1, 3));
            assert_eq!(partition.isr_nodes.len(), 2);
            let mut back = reader(&body, METADATA, version);
            assert_eq!(MetadataResponse::decode(&mut back, version), Ok(response));
            assert_eq!(back.finish(), Ok(()));
        }
    }

    #[test]
    fn all_topics_are_null_but_in_the_oldest_version() {
        for version in 1..=13 {
            let all = MetadataRequest { topics: None, allow_auto_topic_creation: true };
            let body = all.encode(version);
            let other: theirs::MetadataRequest = read(&body, version);
            assert!(other.topics.is_none());
            assert_eq!(decoded(METADATA, version, &body), Request::Metadata(all));
        }
        let Request::Metadata(oldest) = decoded(METADATA, 0, &[0, 0, 0, 0]) else { panic!() };
        assert_eq!(oldest.topics, None);
    }

    #[test]
    fn init_producer_id_both_ways() {
        for version in 0..=5 {
            let held = version >= 3;
            let request = InitProducerIdRequest {
                transactional_id: Some("tx".into()),
                transaction_timeout_ms: 60_000,
                producer_id: if held { 9 } else { -1 },
                producer_epoch: if held { 2 } else { -1 },
            };
            let body = request.encode(version);
            let other: theirs::InitProducerIdRequest = agree(&body, version);
            assert_eq!(other.transaction_timeout_ms, 60_000);
            assert_eq!(decoded(INIT_PRODUCER_ID, version, &body), Request::InitProducerId(request));
            let response =
                InitProducerIdResponse { error: 14, producer_id: 1 << 40, producer_epoch: 3 };
            let body = response.encode(version);
            let other: theirs::InitProducerIdResponse = agree(&body, version);
            assert_eq!(
                (other.error_code, other.producer_id.0, other.producer_epoch),
                (14, 1 << 40, 3)
            );
            let mut back = reader(&body, INIT_PRODUCER_ID, version);
            assert_eq!(InitProducerIdResponse::decode(&mut back, version), Ok(response));
        }
    }

    #[test]
    fn api_versions_both_ways() {
        for version in 0..=4 {
            let named = if version >= 3 { "rs" } else { "" };
            let request = ApiVersionsRequest::named(named, named);
            let body = request.encode(version);
            let _other: theirs::ApiVersionsRequest = agree(&body, version);
            assert_eq!(decoded(API_VERSIONS, version, &body), Request::ApiVersions(request));
            let response = ApiVersionsResponse {
                error: 42,
                apis: vec![VersionRange { api: 0, min: 3, max: 13 }],
                features_epoch: if version >= 3 { 6 } else { -1 },
                features: match version {
                    3.. => vec![("transaction.version".into(), 2)],
                    _ => vec![],
                },
            };
            let body = response.encode(version);
            let other: theirs::ApiVersionsResponse = agree(&body, version);
            assert_eq!((other.error_code, other.api_keys[0].max_version), (42, 13));
            if version >= 3 {
                assert_eq!(other.finalized_features_epoch, 6);
                assert_eq!(other.finalized_features[0].max_version_level, 2);
            }
            let mut back = reader(&body, API_VERSIONS, version);
            assert_eq!(ApiVersionsResponse::decode(&mut back, version), Ok(response));
        }
    }

    #[test]
    fn fetch_both_ways() {
        for version in 4..=12 {
            let partition = FetchPartition { index: 2, offset: 40, max_bytes: 1 << 20 };
            let request = FetchRequest {
                max_wait_ms: 500,
                min_bytes: 1,
                topics: vec![("topic".into(), vec![partition])],
            };
            let body = request.encode(version);
            let other: theirs::FetchRequest = agree(&body, version);
            assert_eq!((other.max_wait_ms, other.min_bytes), (500, 1));
            assert_eq!(other.topics[0].partitions[0].fetch_offset, 40);
            assert_eq!(decoded(FETCH, version, &body), Request::Fetch(request));
            let fetched = FetchedPartition {
                index: 2,
                error: 1,
                high_watermark: 44,
                log_start: if version >= 5 { 7 } else { -1 },
                records: vec![1, 2, 3].into(),
            };
            let response = FetchResponse { topics: vec![("topic".into(), vec![fetched])] };
            let body = response.encode(version);
            let other: theirs::FetchResponse = agree(&body, version);
            let partition = &other.responses[0].partitions[0];
            assert_eq!((partition.high_watermark, partition.last_stable_offset), (44, 44));
            assert_eq!(partition.records.as_deref(), Some(&[1, 2, 3][..]));
            let mut back = reader(&body, FETCH, version);
            assert_eq!(FetchResponse::decode(&mut back, version), Ok(response));
        }
    }

    #[test]
    fn list_offsets_both_ways() {
        for version in 1..=7 {
            let request =
                ListOffsetsRequest { topics: vec![("topic".into(), vec![(2, EARLIEST)])] };
            let body = request.encode(version);
            let other: theirs::ListOffsetsRequest = agree(&body, version);
            assert_eq!(other.topics[0].partitions[0].timestamp, -2);
            assert_eq!(decoded(LIST_OFFSETS, version, &body), Request::ListOffsets(request));
            let leader_epoch = if version >= 4 { 3 } else { -1 };
            let listed = ListedOffset { index: 2, error: 0, offset: 12, leader_epoch };
            let response = ListOffsetsResponse { topics: vec![("topic".into(), vec![listed])] };
            let body = response.encode(version);
            let other: theirs::ListOffsetsResponse = agree(&body, version);
            assert_eq!(other.topics[0].partitions[0].offset, 12);
            let mut back = reader(&body, LIST_OFFSETS, version);
            assert_eq!(ListOffsetsResponse::decode(&mut back, version), Ok(response));
        }
    }

    #[test]
    fn nobody_coordinates() {
        for version in 0..=6 {
            let request = match version {
                4.. => theirs::FindCoordinatorRequest::default()
                    .with_coordinator_keys(vec!["a".into(), "b".into()]),
                _ => theirs::FindCoordinatorRequest::default().with_key("a".into()),
            };
            let Request::FindCoordinator(ours) =
                decoded(FIND_COORDINATOR, version, &written(&request, version))
            else {
                panic!()
            };
            assert_eq!(ours.keys.len(), if version >= 4 { 2 } else { 1 });
            let other: theirs::FindCoordinatorResponse = agree(&ours.refuse(version, 15), version);
            let codes: Vec<i16> = other.coordinators.iter().map(|one| one.error_code).collect();
            assert_eq!(codes, if version >= 4 { vec![15, 15] } else { vec![] });
            assert_eq!(other.error_code, if version >= 4 { 0 } else { 15 });
        }
    }
}
