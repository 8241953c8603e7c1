use crate::ending::Ending;
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn main(_: &Args) -> anyhow::Result<Ending> { Ok(Ending::Well) }
