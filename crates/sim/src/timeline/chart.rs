//! The drawing, as SVG.

use std::fmt::Write;

use super::layout::{Bar, Chip, LaneRows, Layout};
use super::page::Scale;
use super::text::{cut, escape};

/// Height of the ruler and of the band above the lanes.
const HEAD: f64 = 26.0;
const FLAG: f64 = 20.0;
const CHIPS: f64 = 24.0;
const LANE_GAP: f64 = 16.0;

/// Places of one kind of drawing.
#[derive(Clone, Copy)]
struct Sizes {
    row: f64,
    bar: f64,
}

const fn sizes(scale: Scale) -> Sizes {
    match scale {
        Scale::Steps => Sizes { row: 26.0, bar: 20.0 },
        Scale::Time => Sizes { row: 9.0, bar: 7.0 },
    }
}

/// The chart: names on the left, which stay, and the drawing, which scrolls.
pub(super) fn draw(layout: &Layout) -> String {
    let sizes = sizes(layout.scale);
    let flags = if layout.flags.is_empty() { 0.0 } else { flag_rows(layout) as f64 * FLAG + 6.0 };
    let mut y = HEAD + flags;
    let (mut names, mut body) = (String::new(), String::new());
    for lane in &layout.lanes {
        let height = height_of(lane, sizes);
        let _ = write!(
            body,
            r#"<rect class="lane" x="0" y="{y:.0}" width="{:.0}" height="{height:.0}" rx="5"/>"#,
            layout.width
        );
        name_lane(&mut names, lane, y, sizes, layout.scale);
        draw_lane(&mut body, lane, y, sizes, layout.scale);
        y += height + LANE_GAP;
    }
    let (rules, band) = (ruler(layout, y), flag_band(layout, y));
    let labels = match layout.scale {
        Scale::Steps => 176,
        Scale::Time => 70,
    };
    format!(
        r#"<div class="chart"><svg class="names" width="{labels}" height="{y:.0}">{names}</svg><div class="scroll"><svg width="{:.0}" height="{y:.0}">{rules}{body}{band}</svg></div></div>"#,
        layout.width
    )
}

fn height_of(lane: &LaneRows, sizes: Sizes) -> f64 {
    lane.rows.len().max(1) as f64 * sizes.row + CHIPS + 8.0
}

fn name_lane(into: &mut String, lane: &LaneRows, y: f64, sizes: Sizes, scale: Scale) {
    let _ = write!(
        into,
        r#"<text class="name" x="2" y="{:.0}">{}</text>"#,
        y + 17.0,
        escape(&cut(&lane.name, 22))
    );
    if scale == Scale::Time {
        return;
    }
    for (index, row) in lane.rows.iter().enumerate() {
        let y = y + CHIPS + index as f64 * sizes.row + 17.0;
        let _ = write!(
            into,
            r#"<text class="batch" x="8" y="{y:.0}"><title>{title}</title><tspan class="seq">{}</tspan><tspan dx="6" class="id">{}</tspan><tspan dx="6" class="rec">{}</tspan></text>"#,
            escape(&row.sequence),
            escape(&row.identity),
            escape(&cut(&row.records, 10)),
            title = escape(&row.records),
        );
    }
}

fn draw_lane(into: &mut String, lane: &LaneRows, y: f64, sizes: Sizes, scale: Scale) {
    for chip in &lane.chips {
        match scale {
            Scale::Steps => draw_chip(into, chip, y + 3.0),
            Scale::Time => draw_dot(into, chip, y + 5.0),
        }
    }
    for (index, row) in lane.rows.iter().enumerate() {
        let y = y + CHIPS + index as f64 * sizes.row + 2.0;
        for bar in &row.bars {
            draw_bar(into, bar, y, sizes, scale);
        }
    }
}

fn draw_chip(into: &mut String, chip: &Chip, y: f64) {
    let width = super::text::width(&chip.label) + 12.0;
    let _ = write!(
        into,
        r#"<g class="chip {}"><title>{}</title><rect x="{:.1}" y="{y:.1}" width="{width:.1}" height="17" rx="8"/><text x="{:.1}" y="{:.1}">{}</text></g>"#,
        chip.class,
        escape(&chip.title),
        chip.x,
        chip.x + 6.0,
        y + 12.5,
        escape(&chip.label),
    );
}

fn draw_dot(into: &mut String, chip: &Chip, y: f64) {
    let _ = write!(
        into,
        r#"<g class="chip {}"><title>{}</title><rect x="{:.1}" y="{y:.1}" width="2.2" height="12"/></g>"#,
        chip.class,
        escape(&chip.title),
        chip.x,
    );
}

fn draw_bar(into: &mut String, bar: &Bar, y: f64, sizes: Sizes, scale: Scale) {
    let width = (bar.to - bar.from - 2.0).max(1.5);
    let _ = write!(
        into,
        r#"<g class="bar {}"><title>{}</title><rect x="{:.1}" y="{y:.1}" width="{width:.1}" height="{}" rx="{}"/>"#,
        bar.kind.class(),
        escape(&bar.title),
        bar.from,
        sizes.bar,
        if scale == Scale::Steps { 4 } else { 2 },
    );
    if scale == Scale::Steps {
        let middle = y + 14.0;
        let _ = write!(
            into,
            r#"<text class="broker" x="{:.1}" y="{middle:.1}">{}</text><text class="end" x="{:.1}" y="{middle:.1}">{}</text>"#,
            bar.from + 6.0,
            escape(&cut(&bar.broker, 6)),
            bar.from + width - 6.0,
            escape(&bar.label),
        );
    }
    into.push_str("</g>");
}

fn ruler(layout: &Layout, bottom: f64) -> String {
    let mut text = String::new();
    for tick in &layout.ticks {
        let _ = write!(
            text,
            r#"<line class="tick" x1="{x:.1}" x2="{x:.1}" y1="18" y2="{bottom:.0}"/><text class="time" x="{x:.1}" y="12">{}</text>"#,
            escape(&tick.label),
            x = tick.x - 2.0,
        );
    }
    text
}

/// Flags stand below each other where they would overlap.
fn flag_row(ends: &mut Vec<f64>, chip: &Chip) -> usize {
    let end = chip.x + super::text::width(&chip.label) + 18.0;
    match ends.iter().position(|taken| *taken <= chip.x) {
        Some(row) => {
            ends[row] = end;
            row
        }
        None => {
            ends.push(end);
            ends.len() - 1
        }
    }
}

fn flag_rows(layout: &Layout) -> usize {
    let mut ends = Vec::new();
    layout.flags.iter().for_each(|chip| {
        flag_row(&mut ends, chip);
    });
    ends.len()
}

fn flag_band(layout: &Layout, bottom: f64) -> String {
    let (mut text, mut ends) = (String::new(), Vec::new());
    for chip in &layout.flags {
        let row = flag_row(&mut ends, chip);
        let y = HEAD + row as f64 * FLAG - 2.0;
        let _ = write!(
            text,
            r#"<line class="pole" x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{bottom:.0}"/>"#,
            y + 16.0,
            x = chip.x + 0.5,
        );
        draw_chip(&mut text, chip, y);
    }
    text
}
