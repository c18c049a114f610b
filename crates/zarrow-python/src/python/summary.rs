//! The summary of an object, as text and as HTML.

use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write;
use zarrow::visible;

/// Return text with terminal control characters escaped.
#[pyfunction]
pub fn _visible(text: &str) -> String {
    visible(text).into_owned()
}

/// A title and rows of facts.
pub struct Summary {
    title: String,
    rows: Vec<(&'static str, String)>,
}

impl Summary {
    /// Creates a summary without rows.
    pub fn new(title: impl Into<String>) -> Summary {
        Summary { title: title.into(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(mut self, name: &'static str, value: impl Into<String>) -> Summary {
        self.rows.push((name, value.into()));
        self
    }

    /// Returns the title, and a line for each row.
    pub fn text(&self) -> String {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = visible(&self.title).into_owned();
        for (name, value) in &self.rows {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {name:width$}  {}", visible(value));
        }
        text
    }

    /// Returns a table, followed by the preformatted `body`.
    pub fn html(&self, body: &str) -> String {
        let mut html = String::from("<div>");
        if !self.title.is_empty() {
            let _ = write!(html, "<b>{}</b>", escape(&visible(&self.title)));
        }
        html.push_str("<table>");
        for (name, value) in &self.rows {
            let _ = write!(html, "<tr><th style=\"text-align:left;padding-right:1em\">{name}</th>");
            let _ = write!(html, "<td style=\"text-align:left\">{}</td></tr>", escape(&visible(value)));
        }
        html.push_str("</table>");
        if !body.is_empty() {
            let _ = write!(html, "<pre>{}</pre>", escape(body));
        }
        html + "</div>"
    }
}

/// Formats a shape as a Python tuple.
pub fn tuple(extents: &[u64]) -> String {
    match extents {
        [extent] => format!("({extent},)"),
        extents => {
            let extents: Vec<String> = extents.iter().map(u64::to_string).collect();
            format!("({})", extents.join(", "))
        }
    }
}

/// Formats a number of bytes with three or four digits, in powers of 1024.
pub fn nbytes(nbytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (nbytes as f64, "B");
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match unit {
        "B" => format!("{nbytes} B"),
        unit if value < 10.0 => format!("{value:.2} {unit}"),
        unit if value < 100.0 => format!("{value:.1} {unit}"),
        unit => format!("{value:.0} {unit}"),
    }
}

/// Formats the attributes in one line: as many as fit, and the number of others.
pub fn attributes(attributes: &Map<String, Value>) -> String {
    const LINE: usize = 100;
    const ONE: usize = 40;
    let mut line = String::new();
    for (number, (name, value)) in attributes.iter().enumerate() {
        if line.chars().count() > LINE {
            let _ = write!(line, ", {} more", attributes.len() - number);
            break;
        }
        let separator = if number == 0 { "" } else { ", " };
        let _ = write!(line, "{separator}{}={}", shortened(name, ONE), shortened(&value.to_string(), ONE));
    }
    line
}

/// Truncates the text to `most` characters.
fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

/// Text from a store may contain anything, and a notebook would run it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
