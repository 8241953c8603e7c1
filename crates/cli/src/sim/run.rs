//! `candor sim run`: a scenario, told step by step.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use candor_sim::replay::{Report, Scenario};

use crate::ending::Ending;
use crate::output::{count, page_target, say, write_page};

/// Run scenarios: what a fault, the brokers and the caller do, and what must come of it.
///
/// One line per scenario. A step that comes otherwise is shown with what was expected and what
/// happened. Exit code 0: everything came as it should. How scenarios are written is told in
/// docs/replays.md; the repository has its own in crates/sim/replays.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios; of a directory, all files that end in .replay
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Draw what happened: one page that needs nothing else. Of several scenarios, the first that
    /// fails, or else the last.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
}

pub(crate) fn main(args: &Args) -> anyhow::Result<Ending> {
    let mut shown: Option<Report> = None;
    let mut well = true;
    let files = scenarios(&args.files)?;
    let page = page_target(args.html.as_deref(), files.iter().map(PathBuf::as_path))?;
    for file in files {
        let report = run(&file)?;
        let failed = report.failure.is_some();
        if well {
            shown = Some(report);
        }
        well &= !failed;
    }
    if let (Some(target), Some(report)) = (page, &shown) {
        write_page(target, &report.page)?;
    }
    Ok(Ending::well_if(well))
}

fn run(file: &Path) -> anyhow::Result<Report> {
    let name = file.display().to_string();
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {name}: check the path"))?;
    let scenario = Scenario::parse(&text).with_context(|| name.clone())?;
    let report = scenario.run(&name);
    match &report.failure {
        None => say(&format!(
            "fine: {name}: {} ({}, {})\n",
            scenario.title(),
            count(report.records as u64, "record"),
            count(report.offers as u64, "offer"),
        ))?,
        Some(failure) => say(&format!("WRONG: {}\n{failure}\n", scenario.title()))?,
    }
    Ok(report)
}

fn scenarios(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries =
            fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut found = Vec::new();
        for entry in entries {
            let file = entry?.path();
            if file.extension().is_some_and(|extension| extension == "replay") {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!("{} holds no file that ends in .replay", path.display());
        }
        found.sort();
        all.extend(found);
    }
    Ok(all)
}
