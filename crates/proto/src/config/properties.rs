//! The Java client's keys, verbatim.

use core::time::Duration;
use std::collections::BTreeSet;

use super::{Config, ConfigError};
use crate::partitioner::Partitioning;

/// What is known of a key that this producer does not do.
const UNSUPPORTED: [(&str, &str); 14] = [
    ("transactional.id", "transactions are not there yet; remove it"),
    ("transaction.timeout.ms", "transactions are not there yet; remove it"),
    ("key.serializer", "records are bytes; remove it and serialize before sending"),
    ("value.serializer", "records are bytes; remove it and serialize before sending"),
    ("interceptor.classes", "wrap `send` instead and remove it"),
    ("partitioner.class", "remove it for Java's default, or set Config::partitioning"),
    ("partitioner.availability.timeout.ms", "the choice does not adapt to brokers; remove it"),
    ("max.block.ms", "delivery.timeout.ms counts from the call of send; remove it"),
    ("send.buffer.bytes", "sockets belong to the runtime; remove it"),
    ("receive.buffer.bytes", "sockets belong to the runtime; remove it"),
    ("metric.reporters", "read Producer::stats instead and remove it"),
    ("sasl.mechanism", "authentication is not there yet; remove it"),
    ("sasl.jaas.config", "authentication is not there yet; remove it"),
    ("ssl.truststore.location", "encryption is not there yet; remove it"),
];

/// Keys with exactly one accepted value (or a synonym of it).
const FIXED: [(&str, &[&str], &str); 7] = [
    ("acks", &["all", "-1"], "idempotence needs acks=all; set acks=all or remove it"),
    ("enable.idempotence", &["true"], "this producer is always idempotent; remove it"),
    ("compression.type", &["none"], "compression is not there yet; set none or remove it"),
    ("retries", &["2147483647"], "delivery.timeout.ms ends retries, not a count; remove it"),
    ("security.protocol", &["PLAINTEXT"], "only PLAINTEXT is there yet; remove it"),
    (
        "partitioner.adaptive.partitioning.enable",
        &["false"],
        "partitions are filled evenly, not by broker speed; set false or remove it",
    ),
    ("metadata.recovery.strategy", &["rebootstrap"], "set rebootstrap or remove it"),
];

impl Config {
    /// Reads the Java client's keys verbatim; what is not given has this crate's default.
    ///
    /// ```
    /// use candor_proto::Config;
    /// let config = Config::from_properties([
    ///     ("bootstrap.servers", "kafka-1:9092,kafka-2:9092"),
    ///     ("linger.ms", "20"),
    ///     ("acks", "all"),
    /// ]);
    /// assert!(config.is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// A key that is unknown, not supported, repeated or malformed, or settings that do not fit
    /// together. Nothing is ignored, and idempotence is never switched off silently.
    pub fn from_properties<K, V>(
        properties: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut config = Self::new(Vec::<String>::new());
        let mut seen = BTreeSet::new();
        for (key, value) in properties {
            let (key, value) = (key.as_ref().trim(), value.as_ref().trim());
            if !seen.insert(key.to_owned()) {
                return Err(ConfigError::Repeated { key: key.to_owned() });
            }
            config.set(key, value)?;
        }
        config.check()?;
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        if refuse(key, value)? || self.set_time(key, value)? || self.set_size(key, value)? {
            return Ok(());
        }
        match key {
            "bootstrap.servers" => {
                let addresses = value.split(',').map(str::trim).filter(|text| !text.is_empty());
                self.bootstrap = addresses.map(str::to_owned).collect();
            }
            "client.id" => self.client_id = value.to_owned(),
            "partitioner.ignore.keys" => {
                let ignored = flag(key, value)?;
                self.partitioning =
                    if ignored { Partitioning::Sticky } else { Partitioning::default() };
            }
            _ => return Err(ConfigError::UnknownKey { key: key.to_owned() }),
        }
        Ok(())
    }

    /// Sets the time that `key` names; false if it names none.
    fn set_time(&mut self, key: &str, value: &str) -> Result<bool, ConfigError> {
        let time = match key {
            "linger.ms" => &mut self.linger,
            "delivery.timeout.ms" => &mut self.deadline,
            "request.timeout.ms" => &mut self.request_timeout,
            "socket.connection.setup.timeout.ms" => &mut self.connect_timeout,
            "connections.max.idle.ms" => &mut self.idle_timeout,
            "retry.backoff.ms" => &mut self.retry_backoff.first,
            "retry.backoff.max.ms" => &mut self.retry_backoff.longest,
            "reconnect.backoff.ms" => &mut self.reconnect_backoff.first,
            "reconnect.backoff.max.ms" => &mut self.reconnect_backoff.longest,
            "metadata.max.age.ms" => &mut self.metadata_max_age,
            "metadata.max.idle.ms" => &mut self.metadata_max_idle,
            _ => return Ok(false),
        };
        *time = Duration::from_millis(number(key, value)?);
        Ok(true)
    }

    /// Sets the size or count that `key` names; false if it names none.
    fn set_size(&mut self, key: &str, value: &str) -> Result<bool, ConfigError> {
        let size = match key {
            "batch.size" => &mut self.batch_size,
            "buffer.memory" => &mut self.memory,
            "max.request.size" => &mut self.max_request_size,
            "max.in.flight.requests.per.connection" => &mut self.max_in_flight,
            _ => return Ok(false),
        };
        *size = number(key, value)?;
        Ok(true)
    }
}

/// Whether the key is one with a fixed value, which it has; an error if it may not have this one.
fn refuse(key: &str, value: &str) -> Result<bool, ConfigError> {
    let unsupported = |advice| {
        Err(ConfigError::Unsupported { key: key.to_owned(), value: value.to_owned(), advice })
    };
    if let Some((_, advice)) = UNSUPPORTED.iter().find(|(name, _)| *name == key) {
        return unsupported(advice);
    }
    match FIXED.iter().find(|(name, ..)| *name == key) {
        Some((_, accepted, _)) if accepted.contains(&value) => Ok(true),
        Some((.., advice)) => unsupported(advice),
        None => Ok(false),
    }
}

fn malformed(key: &str, value: &str, expected: &'static str) -> ConfigError {
    ConfigError::Malformed { key: key.to_owned(), value: value.to_owned(), expected }
}

fn number<N: TryFrom<u64>>(key: &str, value: &str) -> Result<N, ConfigError> {
    let wrong = || malformed(key, value, "a whole number, not negative");
    value.parse::<u64>().ok().and_then(|number| N::try_from(number).ok()).ok_or_else(wrong)
}

fn flag(key: &str, value: &str) -> Result<bool, ConfigError> {
    value.parse().map_err(|_| malformed(key, value, "true or false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: (&str, &str) = ("bootstrap.servers", "a:1, b:2");

    #[test]
    fn every_accepted_key_changes_the_setting_of_its_name() {
        let read = Config::from_properties([
            SERVERS,
            ("client.id", "x"),
            ("linger.ms", "7"),
            ("batch.size", "16384"),
            ("buffer.memory", "33554432"),
            ("delivery.timeout.ms", "60000"),
            ("request.timeout.ms", "10000"),
            ("retry.backoff.ms", "10"),
            ("retry.backoff.max.ms", "20"),
            ("reconnect.backoff.ms", "30"),
            ("reconnect.backoff.max.ms", "40"),
            ("max.in.flight.requests.per.connection", "1"),
            ("max.request.size", "2000000"),
            ("metadata.max.age.ms", "1000"),
            ("metadata.max.idle.ms", "2000"),
            ("connections.max.idle.ms", "3000"),
            ("socket.connection.setup.timeout.ms", "4000"),
            ("partitioner.ignore.keys", "true"),
            ("acks", "-1"),
            ("enable.idempotence", "true"),
            ("compression.type", "none"),
        ]);
        let millis = Duration::from_millis;
        let built = Config::new(["a:1", "b:2"])
            .client_id("x")
            .linger(millis(7))
            .batch_size(16384)
            .memory(33_554_432)
            .deadline(millis(60_000))
            .request_timeout(millis(10_000))
            .retry_backoff(millis(10))
            .retry_backoff_max(millis(20))
            .reconnect_backoff(millis(30))
            .reconnect_backoff_max(millis(40))
            .max_in_flight(1)
            .max_request_size(2_000_000)
            .metadata_max_age(millis(1000))
            .metadata_max_idle(millis(2000))
            .idle_timeout(millis(3000))
            .connect_timeout(millis(4000))
            .partitioning(Partitioning::Sticky);
        assert_eq!(read, Ok(built));
    }

    #[test]
    fn nothing_is_ignored() {
        let refused = [
            (("acks", "1"), "acks=all"),
            (("acks", "0"), "acks=all"),
            (("enable.idempotence", "false"), "always idempotent"),
            (("transactional.id", "t"), "transactions"),
            (("compression.type", "zstd"), "compression"),
            (("max.block.ms", "1"), "delivery.timeout.ms"),
            (("linger.mss", "1"), "unknown"),
            (("linger.ms", "-1"), "not negative"),
            (("linger.ms", "soon"), "whole number"),
            (("partitioner.ignore.keys", "yes"), "true or false"),
            (("max.in.flight.requests.per.connection", "6"), "max_in_flight"),
            (("bootstrap.servers", "c:3"), "twice"),
        ];
        for (property, hint) in refused {
            let error = Config::from_properties([SERVERS, property]).unwrap_err().to_string();
            assert!(error.contains(hint), "{property:?} gave: {error}");
        }
    }

    #[test]
    fn bootstrap_servers_is_needed() {
        assert_eq!(Config::from_properties([("acks", "all")]), Err(ConfigError::NoBootstrap));
    }
}
