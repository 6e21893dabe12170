//! Pictures as SVG, for a browser, a page or a report.
//!
//! [`Picture`] is a sheet to draw on: shapes and text in a closed set of
//! [`Style`]s, which have a colour for light and one for dark surroundings. What
//! is drawn of a replay is made from it: [`timeline`] and [`delay_over_writes`].
//!
//! Every text is escaped, every picture has a title and a description for those
//! who do not see it, and status is told by height as well as by colour.
//!
//! ```
//! use evenkeel_replay::draw::{Anchor, Picture, Style};
//!
//! let mut picture = Picture::new(200.0, 60.0, "Load", "One bar, for zone a & b.");
//! picture.group("zone a & b: 70 %", |picture| {
//!     picture.rect(Style::Series, 10.0, 10.0, 140.0, 20.0);
//!     picture.text(Style::Ink, Anchor::Start, 10.0, 50.0, "zone a & b");
//! });
//! let svg = picture.into_svg();
//! assert!(svg.contains("<title>zone a &amp; b: 70 %</title>"));
//! ```

mod axis;
mod picture;
mod scatter;
mod timeline;

pub use picture::{Anchor, Picture, Style};
pub use scatter::delay_over_writes;
pub use timeline::timeline;
