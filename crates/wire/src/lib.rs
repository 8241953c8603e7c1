//! Kafka frames, headers, producer APIs and record batches: bytes in, bytes out
