//! What every record carries, so that a log convicts it: which run, which record, where to, and a
//! checksum over all of it. Text, because a foreign reader hands it over.

use candor_sim::judge::Stored;

/// The value of a record, with so many bytes of filling.
///
/// Records differ in every byte of their filling's first copy, so that mixed bytes show.
pub(crate) fn marked(run: u64, record: u64, topic: u32, partition: i32, filler: usize) -> String {
    let mut text = format!("{run:016x} {record} {topic} {partition} ");
    let pattern = format!("{record:x}.");
    text.extend(pattern.chars().cycle().take(filler));
    let crc = crc32c::crc32c(text.as_bytes());
    format!("{text} {crc:08x}")
}

/// What a stored value is to this run.
pub(crate) fn read(run: u64, topic: u32, value: &[u8]) -> Stored {
    read_text(run, topic, value).unwrap_or(Stored::Corrupt)
}

/// The topic and partition that a value names, if it is one of ours.
pub(crate) fn place(value: Option<&[u8]>) -> Option<(u32, i32)> {
    let mut words = std::str::from_utf8(value?).ok()?.split(' ').skip(2);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn read_text(run: u64, topic: u32, value: &[u8]) -> Option<Stored> {
    let text = std::str::from_utf8(value).ok()?;
    let (body, crc) = text.rsplit_once(' ')?;
    if u32::from_str_radix(crc, 16).ok()? != crc32c::crc32c(body.as_bytes()) {
        return None;
    }
    let mut words = body.split(' ');
    let mut word = || words.next();
    let of = u64::from_str_radix(word()?, 16).ok()?;
    let record = word()?.parse().ok()?;
    let to: u32 = word()?.parse().ok()?;
    // Another partition is the judge's finding, another topic is ours.
    Some(if of == run && to == topic { Stored::Ours(record) } else { Stored::Foreign })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_convicts_every_change() {
        let text = marked(7, 300, 2, 1, 9);
        assert_eq!(read(7, 2, text.as_bytes()), Stored::Ours(300));
        assert_eq!(read(8, 2, text.as_bytes()), Stored::Foreign);
        assert_eq!(read(7, 3, text.as_bytes()), Stored::Foreign);
        for at in 0..text.len() {
            let mut spoiled = text.clone().into_bytes();
            spoiled[at] ^= 1;
            assert_eq!(read(7, 2, &spoiled), Stored::Corrupt, "{at}");
        }
        assert_eq!(read(7, 2, &text.as_bytes()[1..]), Stored::Corrupt);
    }
}
