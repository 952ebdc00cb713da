//! The text format of Prometheus.

use std::fmt::Write as _;

use super::{Histogram, MetricsSnapshot, Point};
use crate::span::AttributeValue;

/// Content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Formats metrics for Prometheus, as a page that it scrapes.
pub fn text(snapshot: &MetricsSnapshot) -> String {
    let mut out = String::new();
    for histogram in &snapshot.histograms {
        write_histogram(&mut out, histogram);
    }
    out
}

fn write_histogram(out: &mut String, histogram: &Histogram) {
    let unit = match histogram.unit {
        "s" => "_seconds",
        _ => "",
    };
    let name = format!("{}{unit}", plain(histogram.name));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {}", histogram.help);
    let _ = writeln!(out, "# TYPE {name} histogram");
    for point in &histogram.points {
        let labels = labels(point);
        let mut total = 0;
        let bounds = histogram.bounds.iter().map(f64::to_string);
        let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
        for (bound, count) in bounds.zip(&point.buckets) {
            total += count;
            let _ = writeln!(out, "{name}_bucket{{{labels}le=\"{bound}\"}} {total}");
        }
        let own = labels.trim_end_matches(',');
        let _ = writeln!(out, "{name}_sum{{{own}}} {}", point.sum);
        let _ = writeln!(out, "{name}_count{{{own}}} {}", point.count);
    }
}

/// Returns the labels of a point, each with a comma behind it.
fn labels(point: &Point) -> String {
    let mut out = String::new();
    for (key, value) in &point.attributes {
        let text = match value {
            AttributeValue::Text(text) => text.clone(),
            AttributeValue::Int(number) => number.to_string(),
            AttributeValue::Float(number) => number.to_string(),
            AttributeValue::Bool(on) => on.to_string(),
            AttributeValue::List(list) => list.join(","),
        };
        let text = text
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(out, "{}=\"{text}\",", plain(key));
    }
    out
}

/// Replaces characters that names cannot have.
fn plain(name: &str) -> String {
    let sign = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
    name.chars().map(sign).collect()
}
