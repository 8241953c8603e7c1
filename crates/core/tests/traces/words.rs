//! Words of a trace into values, and values into words.

use candor_core::{
    BeyondMemory, Identity, LaneConfig, Notice, Offset, OnDataLoss, ProducerEpoch, ProducerId,
    Proof, Span,
};

/// An error says what was expected and what came.
pub(crate) type Step<T = ()> = Result<T, String>;

pub(crate) fn same(came: &str, wanted: &str) -> Step {
    if came == wanted { Ok(()) } else { Err(format!("expected {wanted}, came {came}")) }
}

pub(crate) fn delivered(offset: Option<Offset>) -> String {
    offset.map_or_else(|| "Delivered".to_owned(), |offset| format!("Delivered@{offset}"))
}

pub(crate) fn not_delivered(proof: Proof) -> String {
    match proof {
        Proof::Rejected { code } => format!("NotDelivered Rejected({code})"),
        Proof::NeverOffered
        | Proof::TakenBack
        | Proof::Refused
        | Proof::Unreachable
        | Proof::Overtaken
        | Proof::SlotTaken
        | Proof::NoPartition { .. } => format!("NotDelivered {proof:?}"),
    }
}

pub(crate) fn notice_text(notice: Notice) -> String {
    let place = |offset: Option<Offset>| offset.map_or(-1, Offset::get);
    match notice {
        Notice::Fence { offset } => format!("Fence@{offset}"),
        Notice::Contradiction { offset } => format!("Contradiction@{}", place(offset)),
        Notice::DataLoss { last_acknowledged, log_start } => {
            format!("DataLoss last={} log={}", place(last_acknowledged), place(log_start))
        }
        Notice::StateLost | Notice::IdentityConflict | Notice::Unfenced | Notice::Stopped => {
            format!("{notice:?}")
        }
    }
}

pub(crate) fn config(words: &[&str]) -> Step<LaneConfig> {
    let mut config = LaneConfig::default();
    for word in words {
        match *word {
            "loss=stop" => config.on_data_loss = OnDataLoss::Stop,
            "beyond=resend" => config.beyond_memory = BeyondMemory::Resend,
            "trust" => config.trust_base_offset = true,
            word if word.starts_with("batch=") => {
                config.batch_size = number(&word["batch=".len()..])? as usize;
            }
            word if word.starts_with("s=") || word.starts_with("epoch=") => {}
            word => return Err(format!("{word}: no such option")),
        }
    }
    Ok(config)
}

pub(crate) fn identity(id: i64, epoch: i64) -> Step<Identity> {
    let id = ProducerId::new(id).ok_or("no such producer id")?;
    let epoch = ProducerEpoch::new(epoch as i16).ok_or("no such epoch")?;
    Ok(Identity { id, epoch })
}

pub(crate) fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

pub(crate) fn prefixed<'a>(word: &'a str, prefix: &str) -> Step<&'a str> {
    word.strip_prefix(prefix).ok_or_else(|| format!("{word}: {prefix} is missing"))
}

pub(crate) fn number(word: &str) -> Step<i64> {
    word.parse().map_err(|error| format!("{word}: {error}"))
}

/// `5ms`, `5s` or `5h`.
pub(crate) fn span(word: &str) -> Step<Span> {
    let unit = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let count = number(&word[..unit])? as u64;
    match &word[unit..] {
        "ms" => Ok(Span::from_millis(count)),
        "s" => Ok(Span::from_secs(count)),
        "h" => Ok(Span::from_secs(count * 3600)),
        unit => Err(format!("{unit}: no such unit")),
    }
}
