//! `candor broker`: the model cluster for anyone's client.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};
use candor_sim::broker::Profile;
use candor_sim::serve::{Effect, Fault, Server, Settings, Upset};

use crate::ending::Ending;
use crate::output::say;
use crate::stop::Stop;

/// The language of faults.
const FAULTS: &str = include_str!("faults.txt");

/// Run the model cluster on TCP for any client, until Ctrl-C.
///
/// It speaks ApiVersions, Metadata, InitProducerId, Produce, ListOffsets and Fetch, and keeps logs in memory.
/// Prints one line per broker, "broker ID HOST:PORT", and then "bootstrap HOST:PORT,..".
#[derive(Debug, clap::Args)]
#[command(after_long_help = FAULTS)]
pub(crate) struct Args {
    /// Where the first broker listens; the others take the ports behind it. Port 0: any free ports.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    listen: String,
    /// How many brokers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    brokers: u8,
    /// Partitions of a topic, which is created when it is first asked for; 0 creates none.
    #[arg(long, value_name = "P", default_value_t = 6, value_parser = clap::value_parser!(u32).range(..=10_000))]
    partitions: u32,
    /// The version of Apache Kafka that is imitated: 2.4, 3.9, 4.0, 4.3, 4.4 or 4.5.
    #[arg(long, value_name = "VERSION", default_value = "4.4", value_parser = profile)]
    profile: Profile,
    /// A fault to come, such as "produce:3 drop-reply"; can be repeated. --help names all that there
    /// are, with examples.
    #[arg(long, value_name = "TRIGGER EFFECT")]
    fault: Vec<Fault>,
}

fn profile(text: &str) -> Result<Profile, String> {
    match text {
        "2.4" => Ok(Profile::V2_4),
        "3.9" => Ok(Profile::V3_9),
        "4.0" => Ok(Profile::V4_0),
        "4.3" => Ok(Profile::V4_3),
        "4.4" => Ok(Profile::V4_4),
        "4.5" => Ok(Profile::V4_5),
        _ => Err("the versions are 2.4, 3.9, 4.0, 4.3, 4.4 and 4.5".to_owned()),
    }
}

/// One address per broker.
fn addresses(listen: &str, brokers: u8) -> anyhow::Result<Vec<SocketAddr>> {
    let found = listen.to_socket_addrs();
    let found = found.with_context(|| format!("cannot listen on {listen}: write HOST:PORT"))?;
    let Some(first) = found.into_iter().next() else { bail!("{listen} has no address") };
    let port = |behind: u8| match first.port() {
        0 => Some(0),
        port => port.checked_add(u16::from(behind)),
    };
    let one = |behind: u8| {
        let port = port(behind).with_context(|| {
            format!("{listen} leaves no port for each of {brokers} brokers: choose a lower one")
        })?;
        Ok(SocketAddr::new(first.ip(), port))
    };
    (0..brokers).map(one).collect()
}

/// Faults that befall brokers name those that there are.
fn check_faults(faults: &[Fault], brokers: u8) -> anyhow::Result<()> {
    for fault in faults {
        let Effect::Upset { upset, .. } = &fault.effect else { continue };
        let broker = match upset {
            Upset::MoveLeader { to, .. } => *to,
            Upset::Restart { node, .. } | Upset::Stop { node, .. } => *node,
            Upset::ForgetProducers { .. } | Upset::RecreateTopic { .. } => continue,
        };
        if !(1..=brokers).contains(&broker) {
            bail!("--fault \"{fault}\": there is no broker {broker}: see --brokers");
        }
    }
    Ok(())
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    check_faults(&args.fault, args.brokers)?;
    let settings = Settings {
        profile: args.profile,
        brokers: args.brokers,
        replicas: usize::from(args.brokers.min(3)),
        faults: args.fault.clone(),
        auto_create: usize::try_from(args.partitions).ok().filter(|partitions| *partitions > 0),
        ..Settings::default()
    };
    let server =
        Server::start(settings, &addresses(&args.listen, args.brokers)?).with_context(|| {
            format!("cannot listen on {}: is the port free, and the host this one?", args.listen)
        })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut stop = Stop::listen().context("cannot listen for Ctrl-C")?;
        let brokers = (1..).zip(server.addresses());
        let mut text: String =
            brokers.map(|(id, at): (u8, _)| format!("broker {id} {at}\n")).collect();
        text.push_str(&format!("bootstrap {}\n", server.bootstrap()));
        say(&text)?;
        stop.asked().await;
        anyhow::Ok(())
    })?;
    server.shutdown();
    Ok(Ending::Well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_take_the_ports_behind_the_first() {
        let ports = |listen: &str| -> Vec<u16> {
            addresses(listen, 3).unwrap().iter().map(SocketAddr::port).collect()
        };
        assert_eq!(ports("127.0.0.1:9092"), [9092, 9093, 9094]);
        assert_eq!(ports("127.0.0.1:0"), [0, 0, 0]);
        assert!(addresses("127.0.0.1:65535", 2).is_err());
        assert!(addresses("127.0.0.1", 1).is_err());
        assert!(addresses("127.0.0.1:65536", 1).is_err());
    }

    /// The forms that an error about a fault names.
    fn named(wrong: &str) -> Vec<String> {
        let error = wrong.parse::<Fault>().unwrap_err().to_string();
        let (_, forms) = error.split_once("write ").unwrap();
        let (forms, _) = forms.split_once(", with WHEN").unwrap_or((forms, ""));
        forms.replace(" or ", ", ").split(", ").map(str::to_owned).collect()
    }

    #[test]
    fn the_help_names_every_fault_with_an_example_that_can_be_given() {
        let (forms, examples) = FAULTS.split_once("Examples:").unwrap();
        let examples: Vec<&str> = examples
            .split("--fault \"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .inspect(|example| assert!(example.parse::<Fault>().is_ok(), "{example}"))
            .collect();
        let all = [named("x drop-reply"), named("produce:1 x")].concat();
        assert!(all.len() > 15, "{all:?}");
        let words = |text: &str| text.split([':', ' ']).map(str::to_owned).collect::<Vec<_>>();
        for form in all {
            let head: Vec<String> = form
                .split(':')
                .take_while(|part| part.starts_with(char::is_lowercase))
                .map(str::to_owned)
                .collect();
            assert!(forms.contains(&head.join(":")), "{form}");
            let shown = |example: &&str| words(example).windows(head.len()).any(|at| at == head);
            assert!(form == "hold:by-hand" || examples.iter().any(shown), "no example of {form}");
        }
        let page = include_str!("../../../docs/broker.md");
        assert!(page.contains(FAULTS), "docs/broker.md shows it as it is");
    }
}
