//! A plot of the tokens of each request, one line per strategy. Hand-written SVG that loads no other
//! resources.

use std::fmt::Write;

use windlass_core::text::grouped;

use super::{Report, StrategyOutcome};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 52.0;

/// Colors that most people can tell apart, on white and on black, with dash patterns for those who cannot.
const LOOKS: [(&str, &str); 7] = [
    ("#8a8a8a", ""),
    ("#d55e00", ""),
    ("#0072b2", ""),
    ("#009e73", ""),
    ("#cc79a7", "7 3"),
    ("#b8860b", "2 3"),
    ("#7a5cd6", "10 3 2 3"),
];

/// Draws the first session as SVG. The vertical axis ends half a window above the window.
pub fn plot(report: &Report) -> String {
    let scale = Scale::new(report);
    let title = format!(
        "Tokens per request: {}, a window of {} tokens",
        report.sessions.first().map_or("nothing", String::as_str),
        grouped(report.window)
    );
    let mut svg = head(&escaped(&title));
    axes(&mut svg, &scale);
    limits(&mut svg, &scale, report.window);
    svg.push_str("<g clip-path=\"url(#inside)\">\n");
    for (outcome, look) in report.first.iter().zip(LOOKS) {
        line(&mut svg, &scale, outcome, look);
    }
    svg.push_str("</g>\n");
    for (number, (outcome, look)) in report.first.iter().zip(LOOKS).enumerate() {
        let most = outcome.requests.iter().map(|sent| sent.tokens).max().unwrap_or(0);
        let label = format!("{}, up to {}k", outcome.strategy, most.div_ceil(1_000));
        legend(&mut svg, number, &label, look);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Maps requests and tokens to coordinates.
struct Scale {
    requests: f64,
    tokens: f64,
}

impl Scale {
    #[allow(clippy::cast_precision_loss)]
    fn new(report: &Report) -> Self {
        let sent = || report.first.iter().flat_map(|outcome| &outcome.requests);
        let most = sent().map(|sent| sent.tokens).max().unwrap_or(0).max(1);
        let last = sent().map(|sent| sent.at).max().unwrap_or(0);
        // Without a strategy, requests grow far beyond the window and would flatten the other lines.
        let most = most.min(report.window.saturating_add(report.window / 2).max(1));
        Self {
            requests: last.max(1) as f64,
            tokens: round_up(most as f64),
        }
    }

    fn x(&self, request: f64) -> f64 {
        LEFT + request / self.requests * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, tokens: f64) -> f64 {
        HEIGHT - BOTTOM - tokens / self.tokens * (HEIGHT - TOP - BOTTOM)
    }
}

/// Rounds up to a number that divides well into four steps.
fn round_up(number: f64) -> f64 {
    let step = 10_f64.powf(number.log10().floor());
    let fits = [1.0, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 4.0, 4.8, 6.0, 8.0, 10.0];
    fits.into_iter()
        .map(|times| times * step)
        .find(|limit| *limit >= number)
        .unwrap_or(number)
}

fn head(title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
         <style>\n\
         .paper {{ fill: #ffffff; }}\n\
         text {{ fill: #24292f; font: 12px system-ui, sans-serif; }}\n\
         .title {{ font-weight: 600; }}\n\
         .grid {{ stroke: #d0d7de; }}\n\
         .limit {{ stroke: #57606a; stroke-dasharray: 4 4; }}\n\
         @media (prefers-color-scheme: dark) {{\n\
         .paper {{ fill: #0d1117; }}\n\
         text {{ fill: #e6edf3; }}\n\
         .grid {{ stroke: #30363d; }}\n\
         .limit {{ stroke: #8b949e; }}\n\
         }}\n\
         </style>\n\
         <title>{title}</title>\n\
         <clipPath id=\"inside\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"26\">{title}</text>\n",
        WIDTH - LEFT - RIGHT,
        HEIGHT - TOP - BOTTOM,
    )
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn axes(svg: &mut String, scale: &Scale) {
    const STEPS: u8 = 4;
    let right = WIDTH - RIGHT;
    for step in 0..=STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let (tokens, request) = (scale.tokens * share, scale.requests * share);
        let (x, y) = (scale.x(request), scale.y(tokens));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}k</text>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            (tokens / 1000.0).round() as u64,
            HEIGHT - BOTTOM + 18.0,
            request.round() as u64,
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">messages so far</text>",
        LEFT.midpoint(right),
        HEIGHT - 12.0
    );
}

#[allow(clippy::cast_precision_loss)]
fn limits(svg: &mut String, scale: &Scale, window: u64) {
    if window as f64 > scale.tokens {
        return;
    }
    let (y, right) = (scale.y(window as f64), WIDTH - RIGHT);
    let _ = writeln!(
        svg,
        "<line class=\"limit\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\">window</text>",
        LEFT + 6.0,
        y - 5.0
    );
}

#[allow(clippy::cast_precision_loss)]
fn line(svg: &mut String, scale: &Scale, outcome: &StrategyOutcome, (color, dash): (&str, &str)) {
    let _ = write!(
        svg,
        "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.8\" stroke-dasharray=\"{}\" points=\"",
        if dash.is_empty() { "none" } else { dash }
    );
    for sent in &outcome.requests {
        // Points far above the plot are clipped anyway; keep their coordinates small.
        let y = scale.y((sent.tokens as f64).min(scale.tokens * 1.1));
        let _ = write!(svg, "{:.1},{y:.1} ", scale.x(sent.at as f64));
    }
    let _ = writeln!(svg, "\"><title>{}</title></polyline>", outcome.strategy);
}

#[allow(clippy::cast_precision_loss)]
fn legend(svg: &mut String, number: usize, name: &str, (color, dash): (&str, &str)) {
    let y = TOP + 10.0 + number as f64 * 22.0;
    let x = WIDTH - RIGHT + 16.0;
    let _ = writeln!(
        svg,
        "<line x1=\"{x}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{color}\" stroke-width=\"3\" \
         stroke-dasharray=\"{}\"/>\n<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
        x + 26.0,
        if dash.is_empty() { "none" } else { dash },
        x + 34.0,
        y + 4.0
    );
}

fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let is_plain = |sign: &char| !sign.is_control();
    text.replace('"', "&quot;").chars().filter(is_plain).collect()
}
