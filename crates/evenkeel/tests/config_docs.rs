//! The pages about configuration say what is so: their examples are read.
#![allow(clippy::unwrap_used, reason = "only tests are compiled with this")]

use std::collections::BTreeMap;

use clap::Parser as _;
use evenkeel::catalog::file::parse;
use evenkeel::cli::Arguments;
use evenkeel::config::{CONSUL_ESM, Inputs, Settings, load};
use evenkeel::document::Format;
use evenkeel::environment::Environment;
use evenkeel::exit::Exit;
use evenkeel::thresholds::{Resolver, Source, Sources};

const PAGES: [(&str, &str); 4] = [
    (
        "configuration.md",
        include_str!("../../../docs/configuration.md"),
    ),
    ("thresholds.md", include_str!("../../../docs/thresholds.md")),
    (
        "file-catalog.md",
        include_str!("../../../docs/file-catalog.md"),
    ),
    (
        "from-consul-esm.md",
        include_str!("../../../docs/from-consul-esm.md"),
    ),
];

/// Language and text of each code block of a page.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(language) if !open => {
                blocks.push((language, String::new()));
                open = true;
            }
            Some(_) => open = false,
            None if open => {
                let (_, text) = blocks.last_mut().unwrap();
                text.push_str(line);
                text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

fn faults_of_settings(text: &str, extension: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(format!("c.{extension}"));
    std::fs::write(&path, text).unwrap();
    let inputs = Inputs {
        files: vec![path],
        ..Inputs::default()
    };
    let loaded = load(&inputs, &Environment::default());
    loaded.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn every_example_is_read_without_a_fault() {
    let mut seen = BTreeMap::new();
    for (name, page) in PAGES {
        for (language, text) in blocks(page) {
            let is_checks = text.contains("[[check]]") || text.contains("\"check\"");
            match language {
                "toml" | "json" if is_checks => {
                    let format = if language == "json" {
                        Format::Json
                    } else {
                        Format::Toml
                    };
                    let parsed = parse(text.as_bytes(), format);
                    assert!(parsed.is_ok(), "{name}: {parsed:?}\n{text}");
                }
                "toml" | "json" => {
                    let faults = faults_of_settings(&text, language);
                    assert!(faults.is_empty(), "{name}: {faults:?}\n{text}");
                }
                "sh" => {
                    for line in text.lines() {
                        let arguments = Arguments::try_parse_from(line.split_whitespace());
                        assert!(arguments.is_ok(), "{name}: {line}: {arguments:?}");
                    }
                }
                "notes" => {
                    let effective = Resolver::new(&Settings::default()).resolve(&Sources {
                        notes: &text,
                        ..Sources::default()
                    });
                    assert_eq!(effective.faults, [], "{name}: {text}");
                    assert_eq!(effective.decided_by, Source::Notes, "{name}: {text}");
                }
                "meta" => {
                    let metadata = text
                        .lines()
                        .map(|line| {
                            let (key, value) = line.split_once(" = ").unwrap();
                            (key.to_owned(), value.to_owned())
                        })
                        .collect();
                    let effective = Resolver::new(&Settings::default()).resolve(&Sources {
                        node_meta: Some(&metadata),
                        ..Sources::default()
                    });
                    assert_eq!(effective.faults, [], "{name}: {text}");
                    assert_eq!(effective.decided_by, Source::NodeMeta, "{name}: {text}");
                }
                other => panic!("{name}: a block in {other:?}"),
            }
            *seen.entry(language).or_insert(0) += 1;
        }
    }
    assert!(
        seen["toml"] >= 4 && seen["json"] >= 2 && seen["sh"] >= 4,
        "{seen:?}"
    );
    assert!(seen["notes"] >= 1 && seen["meta"] >= 2, "{seen:?}");
}

#[test]
fn the_table_of_exit_codes_is_complete() {
    let (_, page) = PAGES[0];
    let section = page.split("## Exit codes").nth(1).unwrap();
    let told: Vec<u8> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    let known = [
        Exit::Ok,
        Exit::NotSo,
        Exit::Critical,
        Exit::Unprobed,
        Exit::Usage,
        Exit::Data,
        Exit::Unavailable,
        Exit::Internal,
        Exit::CannotCreate,
        Exit::Io,
        Exit::Cut,
        Exit::NoPermission,
        Exit::Config,
    ];
    assert_eq!(told, known.map(Exit::code));
}

#[test]
fn every_variable_of_consul_is_told() {
    let (_, page) = PAGES[0];
    for name in evenkeel_consul::config::VARIABLES {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")));
        let key = row
            .unwrap_or_else(|| panic!("{name}"))
            .split('`')
            .nth(3)
            .unwrap();
        let value = if name.contains("SSL") { "true" } else { "a:1" };
        let value = if name == "CONSUL_HTTP_SSL_VERIFY" {
            "false"
        } else {
            value
        };
        let environment = [(name.to_owned(), value.to_owned())].into_iter().collect();
        let loaded = load(&Inputs::default(), &environment);
        assert_eq!(loaded.origin(key).to_string(), name);
    }
}

/// The rows of the table in the page are the keys of a check.
#[test]
fn every_key_of_a_check_is_told() {
    use evenkeel::document::Shape;

    let (_, page) = PAGES[2];
    let Shape::Table(fields) = evenkeel::catalog::file::shape() else {
        panic!("a file is a table")
    };
    let Shape::List(check) = &fields[0].shape else {
        panic!("check is a list")
    };
    let Shape::Table(keys) = &**check else {
        panic!("a check is a table")
    };
    let thresholds = Shape::of::<evenkeel::config::ThresholdSettings>();
    for key in keys
        .iter()
        .filter(|key| thresholds.find(&[&key.name]).is_none())
    {
        let told = page
            .lines()
            .any(|line| line.starts_with("| `") && line.contains(&format!("`{}`", key.name)));
        assert!(told, "{}", key.name);
        assert!(!key.description.is_empty(), "{}", key.name);
    }
}

/// Every setting of consul-esm has a row, and the row names the setting that the
/// program itself points to.
#[test]
fn every_setting_of_consul_esm_is_told() {
    let (_, page) = PAGES[3];
    let row = |key: &str| {
        page.lines()
            .find(|line| line.starts_with(&format!("| `{key}` |")))
            .unwrap_or_else(|| panic!("{key} has no row"))
    };
    for (key, hint) in CONSUL_ESM {
        let row = row(key);
        if let Some(ours) = hint.strip_prefix("did you mean ") {
            let ours = ours.trim_end_matches('?').split(' ').next().unwrap();
            assert!(row.contains(&format!("`{ours}")), "{key}: {row}");
        }
        let faults = faults_of_settings(&format!("{{\"{key}\": 1}}"), "json");
        assert!(faults[0].contains(hint), "{key}: {faults:?}");
    }
    for (key, value) in [
        ("critical_threshold", "1"),
        ("passing_threshold", "1"),
        ("ping_type", "\"udp\""),
        ("ping_type", "\"socket\""),
    ] {
        row(key);
        let faults = faults_of_settings(&format!("{{\"{key}\": {value}}}"), "json");
        assert_eq!(faults, [""; 0], "{key}");
    }
}
