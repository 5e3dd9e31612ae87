//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write};

use super::histogram::Counted;

/// The media type of what is written here.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics that is being written.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

/// What kind of metric follows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Only rises while the broker runs.
    Counter,
    /// Rises and falls.
    Gauge,
    Histogram,
}

impl Page {
    /// Begins a metric: all its samples follow.
    pub(super) fn metric(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        self.labels(labels);
        self.line(format_args!(" {value}"));
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], counted: &Counted) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in &counted.up_to {
            let bound = bound.to_string();
            self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), count);
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), counted.count);
        self.sample(&format!("{name}_sum"), labels, counted.sum_seconds);
        self.sample(&format!("{name}_count"), labels, counted.count);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn labels(&mut self, labels: &[(&str, &str)]) {
        for (at, (name, value)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
    }

    fn line(&mut self, text: impl Display) {
        writeln!(self.text, "{text}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_prometheus_reads() {
        let mut page = Page::default();
        page.metric("thalweg_partitions", Kind::Gauge, "Partitions.");
        page.sample("thalweg_partitions", &[], 3);
        page.sample("thalweg_partitions", &[("topic", "a\"\\\n")], 0.5);
        page.metric("took", Kind::Histogram, "Took.");
        let counted = Counted { up_to: vec![(0.000_064, 1), (2.5, 2)], count: 3, sum_seconds: 7.25 };
        page.histogram("took", &[("api", "Fetch")], &counted);
        let expected = "# HELP thalweg_partitions Partitions.\n\
                        # TYPE thalweg_partitions gauge\n\
                        thalweg_partitions 3\n\
                        thalweg_partitions{topic=\"a\\\"\\\\\\n\"} 0.5\n\
                        # HELP took Took.\n\
                        # TYPE took histogram\n\
                        took_bucket{api=\"Fetch\",le=\"0.000064\"} 1\n\
                        took_bucket{api=\"Fetch\",le=\"2.5\"} 2\n\
                        took_bucket{api=\"Fetch\",le=\"+Inf\"} 3\n\
                        took_sum{api=\"Fetch\"} 7.25\n\
                        took_count{api=\"Fetch\"} 3\n";
        assert_eq!(page.into_text(), expected);
    }
}
