use std::fmt::Write as _;

/// What a shape or text is of; its colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// The ground of a picture.
    Paper,
    /// Text and points that matter.
    Ink,
    /// Text beside it.
    Faint,
    /// Axes and lines to read figures by.
    Grid,
    /// The status passing.
    Passing,
    /// The status warning.
    Warning,
    /// The status critical.
    Critical,
    /// Warning, for a part of the time only.
    PartlyWarning,
    /// Critical, for a part of the time only.
    PartlyCritical,
    /// A series of figures.
    Series,
    /// An outline around nothing.
    Outline,
}

/// Class, what is set, colour on light and on dark ground. The status colours
/// are of Okabe and Ito's palette, which the colour-blind can tell apart.
const STYLES: [(Style, &str, &str, &str, &str); 11] = [
    (Style::Paper, "paper", "fill", "#ffffff", "#15181b"),
    (Style::Ink, "ink", "fill", "#1b1f24", "#e8eaed"),
    (Style::Faint, "faint", "fill", "#59636e", "#9aa4af"),
    (Style::Grid, "grid", "stroke", "#d5dae0", "#383e45"),
    (Style::Passing, "passing", "fill", "#009e73", "#22b98d"),
    (Style::Warning, "warning", "fill", "#e69f00", "#f0b429"),
    (Style::Critical, "critical", "fill", "#c84c00", "#f0702a"),
    (
        Style::PartlyWarning,
        "partly-warning",
        "fill",
        "#f5d594",
        "#8a6a1f",
    ),
    (
        Style::PartlyCritical,
        "partly-critical",
        "fill",
        "#e9a987",
        "#914a23",
    ),
    (Style::Series, "series", "fill", "#0b6bb8", "#5fb0f0"),
    (Style::Outline, "outline", "stroke", "#0b6bb8", "#5fb0f0"),
];

impl Style {
    fn class(self) -> &'static str {
        STYLES
            .iter()
            .find(|(style, ..)| *style == self)
            .map_or("", |(_, class, ..)| class)
    }
}

/// Where the given place of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// A sheet of so many pixels to draw on, from the top left corner; what is drawn
/// later lies above.
#[derive(Debug, Clone)]
pub struct Picture {
    width: f64,
    height: f64,
    title: String,
    description: String,
    body: String,
}

impl Picture {
    /// The size of a text in pixels.
    pub const TEXT_SIZE: f64 = 13.0;

    /// An empty sheet. Title and description are read to those who do not see it.
    pub fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut picture = Self {
            width,
            height,
            title: title.to_owned(),
            description: description.to_owned(),
            body: String::new(),
        };
        picture.rect(Style::Paper, 0.0, 0.0, width, height);
        picture
    }

    /// A filled rectangle.
    pub fn rect(&mut self, style: Style, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        let class = style.class();
        self.push(&format!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    /// A straight line; give it a style that is a stroke.
    pub fn line(&mut self, style: Style, from: (f64, f64), to: (f64, f64)) {
        self.polyline(style, &[from, to]);
    }

    /// A line through several points; give it a style that is a stroke.
    pub fn polyline(&mut self, style: Style, points: &[(f64, f64)]) {
        self.points("polyline", style, points);
    }

    /// A filled shape with these corners.
    pub fn polygon(&mut self, style: Style, corners: &[(f64, f64)]) {
        self.points("polygon", style, corners);
    }

    fn points(&mut self, shape: &str, style: Style, points: &[(f64, f64)]) {
        let mut text = String::new();
        for (x, y) in points {
            let _ = write!(text, "{},{} ", number(*x), number(*y));
        }
        let (class, text) = (style.class(), text.trim_end());
        self.push(&format!(r#"<{shape} class="{class}" points="{text}"/>"#));
    }

    /// A disc; with [`Style::Outline`] a ring.
    pub fn circle(&mut self, style: Style, x: f64, y: f64, radius: f64) {
        let [x, y, radius] = [x, y, radius].map(number);
        let class = style.class();
        self.push(&format!(
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#
        ));
    }

    /// A line of text whose base is at `y`.
    pub fn text(&mut self, style: Style, anchor: Anchor, x: f64, y: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (class, x, y, text) = (style.class(), number(x), number(y), escaped(text));
        self.push(&format!(
            r#"<text class="{class}"{anchor} x="{x}" y="{y}">{text}</text>"#
        ));
    }

    /// What `draw` draws belongs together, and `title` says what it is: a browser
    /// shows it at the pointer, a screen reader reads it.
    pub fn group(&mut self, title: &str, draw: impl FnOnce(&mut Self)) {
        self.push(&format!("<g><title>{}</title>", escaped(title)));
        draw(self);
        self.push("</g>");
    }

    /// About how wide a text will be; fonts differ.
    pub fn width_of(text: &str) -> f64 {
        let wide = |c: char| if c.is_ascii() { 0.6 } else { 1.0 };
        text.chars().map(wide).sum::<f64>() * Self::TEXT_SIZE
    }

    /// As much of a text as goes into `width`, with a mark where it is cut.
    pub fn fit(text: &str, width: f64) -> String {
        if Self::width_of(text) <= width {
            return text.to_owned();
        }
        let mut fitting = String::new();
        for c in text.chars() {
            fitting.push(c);
            if Self::width_of(&fitting) + Self::TEXT_SIZE > width {
                break;
            }
        }
        fitting.push('…');
        fitting
    }

    /// The picture as a file.
    pub fn into_svg(self) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let [light, dark] = [false, true].map(|dark| {
            let mut rules = String::new();
            for (_, class, property, on_light, on_dark) in STYLES {
                let colour = if dark { on_dark } else { on_light };
                let _ = write!(rules, " .{class} {{ {property}: {colour} }}");
            }
            rules
        });
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{title}</title>\n\
             <desc>{description}</desc>\n\
             <style>\n\
             text {{ font: {size}px system-ui, \"Segoe UI\", \"DejaVu Sans\", sans-serif }}\n\
             .grid, .outline {{ fill: none; stroke-width: 1 }} .outline {{ stroke-width: 2 }}\n\
             {light}\n\
             @media (prefers-color-scheme: dark) {{{dark} }}\n\
             </style>\n\
             {body}</svg>\n",
            size = Self::TEXT_SIZE,
            light = light.trim_start(),
            body = self.body,
        )
    }

    fn push(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }
}

/// A tenth of a pixel is fine enough, and makes short files.
fn number(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    match tenths.is_finite() {
        // Adding 0 takes the sign off a zero.
        true => format!("{}", tenths + 0.0),
        false => "0".to_owned(),
    }
}

/// A text that can be put into an element or an attribute. Characters that XML
/// 1.0 does not allow at all are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_style_has_its_colours() {
        for (index, (_, class, ..)) in STYLES.iter().enumerate() {
            assert!(STYLES[..index].iter().all(|(_, other, ..)| other != class));
        }
        // The compiler asks for a new one here.
        let next = |style| match style {
            Style::Paper => Style::Ink,
            Style::Ink => Style::Faint,
            Style::Faint => Style::Grid,
            Style::Grid => Style::Passing,
            Style::Passing => Style::Warning,
            Style::Warning => Style::Critical,
            Style::Critical => Style::PartlyWarning,
            Style::PartlyWarning => Style::PartlyCritical,
            Style::PartlyCritical => Style::Series,
            Style::Series => Style::Outline,
            Style::Outline => Style::Paper,
        };
        let mut style = Style::Paper;
        loop {
            assert_ne!(style.class(), "", "{style:?}");
            style = next(style);
            if style == Style::Paper {
                break;
            }
        }
    }

    #[test]
    fn a_text_is_cut_to_its_room() {
        assert_eq!(Picture::fit("short", 100.0), "short");
        let cut = Picture::fit(&"wide".repeat(50), 100.0);
        assert!(
            cut.ends_with('…') && Picture::width_of(&cut) < 115.0,
            "{cut}"
        );
    }

    #[test]
    fn numbers_are_short_and_never_break_the_file() {
        for (given, expected) in [
            (1.0, "1"),
            (0.04, "0"),
            (-0.04, "0"),
            (2.26, "2.3"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(number(given), expected);
        }
    }
}
