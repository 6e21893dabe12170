//! Pictures, read by somebody else's XML parser.

use evenkeel_replay::draw::{Anchor, Picture, Style, delay_over_writes, timeline};
use evenkeel_replay::{CheckOutcome, Outcome, ReplaySettings};
use proptest::prelude::*;
use roxmltree::{Document, Node};

use crate::support::{in_a_row, raw, replay};

/// A name that would break a picture in every way that it could.
const HOSTILE: &str = "<script>alert(1)</script> & \"x\" 'y' ]]> --> \u{1}\u{1b}[2J\u{fffe} é ☃";

fn all<'a>(document: &'a Document<'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document
        .descendants()
        .filter(move |node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
}

fn replayed(check: &str, results: &str) -> Outcome {
    let file: String = results
        .chars()
        .enumerate()
        .map(|(index, letter)| {
            let status = if letter == 'P' { "up" } else { "down" };
            let check = check.replace('"', "\"\"");
            format!("{},\"{check}\",{status}\n", 1000 + 10 * index)
        })
        .collect();
    let mut settings = ReplaySettings::default();
    settings.timelines = 10;
    let (outcome, bad) = replay(
        file.as_bytes(),
        settings,
        &[("raw", raw()), (HOSTILE, in_a_row(3, 3))],
    );
    assert!(bad.is_empty(), "{bad:?}");
    outcome
}

fn drawn(check: &CheckOutcome) -> String {
    timeline(check, &["raw", HOSTILE]).expect("a timeline was kept")
}

/// Everything that has a place lies within the picture.
fn assert_inside(document: &Document<'_>) {
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size("width"), size("height"));
    for node in document.descendants() {
        let number = |name: &str| {
            node.attribute(name)
                .map(|text| text.parse::<f64>().unwrap())
        };
        for (at, length, most) in [
            ("x", "width", width),
            ("y", "height", height),
            ("cx", "r", width),
            ("cy", "r", height),
        ] {
            let Some(at) = number(at) else { continue };
            let end = at + number(length).unwrap_or(0.0);
            assert!(at >= 0.0 && end <= most + 0.2, "{node:?}");
        }
    }
}

#[test]
fn names_cannot_break_a_picture() {
    let outcome = replayed(HOSTILE, "PPPPPPPPFFFFFFFFPPPPPFPPPPPP");
    for svg in [
        drawn(&outcome.checks[0]),
        delay_over_writes(&outcome.strategies),
    ] {
        let document = Document::parse(&svg).unwrap();
        assert_eq!(all(&document, "script").count(), 0);
        let shown = "<script>alert(1)</script> & \"x\" 'y' ]]> --> \u{fffd}\u{fffd}[2J\u{fffd} é ☃";
        let told = all(&document, "title").any(|title| title.text().unwrap().contains(shown));
        assert!(told, "{svg}");
        assert_inside(&document);
    }
}

#[test]
fn a_picture_says_what_it_shows_to_those_who_do_not_see_it() {
    let outcome = replayed("web", "PPPPPPPPFFFFFFFFPPPPPFPPPPPP");
    let svg = drawn(&outcome.checks[0]);
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    assert_eq!(
        root.attribute("aria-label"),
        Some("web: results and reported statuses")
    );
    let described = all(&document, "desc").next().unwrap().text().unwrap();
    assert!(described.contains("results: 4 changes"), "{described}");
    assert!(described.contains("2 writes, 0 false"), "{described}");
    // A group for the results, the truth, and each strategy that differs from them.
    let titles: Vec<&str> = all(&document, "g")
        .map(|group| group.first_element_child().unwrap().text().unwrap())
        .collect();
    assert_eq!(titles[0], "results: 4 changes");
    assert_eq!(titles[1], "truth: with hindsight");
    assert_eq!(
        titles.len(),
        3,
        "raw is the first row once more: {titles:?}"
    );
}

#[test]
fn bars_lie_where_their_time_is_and_tell_a_status_by_height() {
    let outcome = replayed("web", &["PPPPPPPPPP", "FFFFFFFFFF", "PPPPPPPPPP"].concat());
    let svg = drawn(&outcome.checks[0]);
    let document = Document::parse(&svg).unwrap();
    let results = all(&document, "g").next().unwrap();
    let bars: Vec<(&str, f64, f64, f64)> = results
        .children()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "rect")))
        .map(|bar| {
            let number = |name: &str| bar.attribute(name).unwrap().parse::<f64>().unwrap();
            let class = bar.attribute("class").unwrap();
            (class, number("x"), number("width"), number("height"))
        })
        .collect();
    let classes: Vec<&str> = bars.iter().map(|bar| bar.0).collect();
    assert_eq!(classes, ["passing", "critical", "passing"]);
    // 29 intervals of 10 s, and a second for the last result.
    let scale = 730.0 / 291.0;
    for (bar, (from, length)) in bars
        .iter()
        .zip([(0.0, 100.0), (100.0, 100.0), (200.0, 91.0)])
    {
        assert!((bar.1 - (250.0 + from * scale)).abs() < 0.2, "{bar:?}");
        assert!((bar.2 - length * scale).abs() < 0.2, "{bar:?}");
    }
    assert!(bars[1].3 > 3.0 * bars[0].3);
}

#[test]
fn strategies_that_no_other_beats_are_full_points() {
    let outcome = {
        let file: String = [
            "PPPPPPPPFPPPPPFFFFFFFFFFPPPPPPPP",
            "PPPPPPPPPPFFFFFFFFFPPPPPPP",
        ]
        .iter()
        .enumerate()
        .flat_map(|(check, results)| {
            results.chars().enumerate().map(move |(index, letter)| {
                let status = if letter == 'P' { "up" } else { "down" };
                format!("{},{check},{status}\n", 10 * index)
            })
        })
        .collect();
        let strategies = [
            ("raw", raw()),
            ("two", in_a_row(2, 2)),
            // As few writes as `two`, and later.
            ("five", in_a_row(5, 5)),
            // Never reports anything.
            ("thirty", in_a_row(30, 30)),
        ];
        replay(file.as_bytes(), ReplaySettings::default(), &strategies).0
    };
    let svg = delay_over_writes(&outcome.strategies);
    let document = Document::parse(&svg).unwrap();
    let points: Vec<(&str, &str)> = all(&document, "g")
        .map(|group| {
            let circle = group
                .children()
                .find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "circle")))
                .unwrap();
            let title = group.first_element_child().unwrap().text().unwrap();
            (
                title.split(':').next().unwrap(),
                circle.attribute("class").unwrap(),
            )
        })
        .collect();
    assert_eq!(
        points,
        [("raw", "series"), ("two", "series"), ("five", "outline")]
    );
    assert!(svg.contains("reported no failure: thirty"));
    assert_inside(&document);
}

#[test]
fn a_picture_of_nothing_is_one() {
    Document::parse(&delay_over_writes(&[])).unwrap();
    let outcome = replayed("web", "P");
    Document::parse(&drawn(&outcome.checks[0])).unwrap();
    let (outcome, _) = replay(b"1,a,up\n", ReplaySettings::default(), &[("raw", raw())]);
    assert_eq!(timeline(&outcome.checks[0], &["raw"]), None);
}

proptest! {
    #[test]
    fn whatever_is_drawn_is_xml(
        text in any::<String>(),
        numbers in proptest::collection::vec(any::<f64>(), 6),
    ) {
        let mut picture = Picture::new(numbers[0], numbers[1], &text, &text);
        picture.group(&text, |picture| {
            picture.text(Style::Ink, Anchor::End, numbers[2], numbers[3], &text);
            picture.rect(Style::Series, numbers[2], numbers[3], numbers[4], numbers[5]);
            picture.polyline(Style::Grid, &[(numbers[4], numbers[5]), (numbers[0], numbers[1])]);
            picture.polygon(Style::Series, &[(numbers[2], numbers[3]), (numbers[0], numbers[5])]);
            picture.circle(Style::Outline, numbers[2], numbers[3], numbers[4]);
        });
        let svg = picture.into_svg();
        prop_assert!(Document::parse(&svg).is_ok(), "{}", svg);
        // What fits is no wider than it says, and never empty where there was text.
        let fitting = Picture::fit(&text, 100.0);
        prop_assert!(fitting.is_empty() == text.is_empty());
    }
}
