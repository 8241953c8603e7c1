//! Time, CPU and memory. CPU is the whole process's as `getrusage` tells it, so that all threads and
//! the kernel's part count.

use std::time::Instant;

use anyhow::Context;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// Verdicts, and how long some of them took.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    acked: u64,
    failed: u64,
    micros: Vec<u64>,
}

impl Samples {
    pub(crate) fn count(&mut self, acked: bool, sent: Option<Instant>) {
        if acked {
            self.acked += 1;
        } else {
            self.failed += 1;
        }
        self.micros
            .extend(sent.map(|at| u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX)));
    }
}

/// The instrument's line.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    peer: &'static str,
    records: u64,
    size: usize,
    partitions: u32,
    acked: u64,
    failed: u64,
    seconds: f64,
    records_per_s: f64,
    mb_per_s: f64,
    user_s: f64,
    sys_s: f64,
    cpu_ns_per_record: f64,
    max_rss_mb: f64,
    p50_us: u64,
    p99_us: u64,
    samples: usize,
}

impl Report {
    pub(crate) const fn all_acked(&self) -> bool {
        self.failed == 0 && self.acked == self.records
    }
}

/// A measurement that runs.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    usage: Usage,
}

impl Meter {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let usage = usage()?;
        Ok(Self { began: Instant::now(), usage })
    }

    pub(crate) fn finish(
        self,
        records: u64,
        size: usize,
        partitions: u32,
        mut sent: Samples,
    ) -> anyhow::Result<Report> {
        let seconds = self.began.elapsed().as_secs_f64();
        let end = usage()?;
        let user_s = since(end.user_time(), self.usage.user_time());
        let sys_s = since(end.system_time(), self.usage.system_time());
        sent.micros.sort_unstable();
        let count = records as f64;
        Ok(Report {
            peer: "candor",
            records,
            size,
            partitions,
            acked: sent.acked,
            failed: sent.failed,
            seconds,
            records_per_s: (count / seconds).round(),
            mb_per_s: count * size as f64 / seconds / 1e6,
            user_s,
            sys_s,
            cpu_ns_per_record: (user_s + sys_s) * 1e9 / count,
            // Linux counts in KiB.
            max_rss_mb: end.max_rss() as f64 / 1024.0,
            p50_us: percentile(&sent.micros, 50),
            p99_us: percentile(&sent.micros, 99),
            samples: sent.micros.len(),
        })
    }
}

fn usage() -> anyhow::Result<Usage> {
    getrusage(UsageWho::RUSAGE_SELF).context("the system does not tell the CPU time")
}

fn since(end: TimeVal, begin: TimeVal) -> f64 {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(end) - seconds(begin)
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_of_none() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 99)), (51, 100));
        assert_eq!((percentile(&[7], 99), percentile(&[], 50)), (7, 0));
    }

    #[test]
    fn one_failed_record_is_not_well() {
        let mut samples = Samples::default();
        samples.count(true, None);
        samples.count(false, Some(Instant::now()));
        let report = Meter::start().unwrap().finish(2, 100, 1, samples).unwrap();
        assert_eq!((report.acked, report.failed, report.samples), (1, 1, 1));
        assert!(!report.all_acked());
    }
}
