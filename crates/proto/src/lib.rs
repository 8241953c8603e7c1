//! The whole Kafka producer as a pure state machine over bytes
