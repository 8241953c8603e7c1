//! Text that may come from anybody.

/// Escaped for HTML, in elements and in quoted attributes. Control characters become a sign.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Cut to so many characters, with a sign that it was.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A time since the beginning, for people.
pub(super) fn time(micros: u64) -> String {
    match micros {
        0 => "0".to_owned(),
        1..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", trimmed(micros, 1_000)),
        1_000_000..120_000_000 => format!("{} s", trimmed(micros, 1_000_000)),
        120_000_000..7_200_000_000 => format!("{} min", trimmed(micros, 60_000_000)),
        _ => format!("{} h", trimmed(micros, 3_600_000_000)),
    }
}

fn trimmed(micros: u64, unit: u64) -> String {
    let text = format!("{:.3}", micros as f64 / unit as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// About how wide a text is in the small font, in pixels.
pub(super) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.75
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_text_or_attribute() {
        let hostile = "</pre><script>alert('x')</script>\" onload=\"y\u{0}";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}']), "{safe}");
        assert_eq!(escape("a & b"), "a &amp; b");
    }

    #[test]
    fn times_are_short() {
        let of = |micros: u64| time(micros);
        assert_eq!(of(0), "0");
        assert_eq!(of(100_000), "100 ms");
        assert_eq!(of(1_500_000), "1.5 s");
        assert_eq!(of(120_000_000), "2 min");
        assert_eq!(of(7_200_000_000), "2 h");
        assert_eq!(of(7), "7 µs");
    }

    #[test]
    fn cuts_are_at_characters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
