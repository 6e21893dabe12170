//! docs/thresholds.md says which keys there are.

use std::fmt::Write as _;

use evenkeel_threshold::AnyStrategy;

const DOCS: &str = include_str!("../../../../../docs/thresholds.md");

/// The page's section on keys, as it follows from the strategies.
fn tables() -> String {
    let mut text = String::new();
    for name in AnyStrategy::NAMES {
        let about = AnyStrategy::about(name).unwrap();
        write!(text, "### `{name}`\n\n{about}\n\n").unwrap();
        text.push_str("| key | meaning | range | default |\n|---|---|---|---|\n");
        for key in AnyStrategy::keys_of(name).unwrap() {
            let range = match key.kind {
                evenkeel_threshold::Kind::Word(words) => {
                    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                    words.join(", ")
                }
                evenkeel_threshold::Kind::Switch => "`true`, `false`".to_owned(),
                _ => key.range.to_owned(),
            };
            let default = match key.default {
                "" => "none".to_owned(),
                default => format!("`{default}`"),
            };
            let (name, meaning) = (key.name, key.meaning);
            writeln!(text, "| `{name}` | {meaning} | {range} | {default} |").unwrap();
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

#[test]
fn the_page_has_every_key_with_its_range_and_default() {
    let expected = tables();
    assert!(
        DOCS.contains(&expected),
        "the section \"Keys\" of docs/thresholds.md has to be:\n\n{expected}\n"
    );
    for name in AnyStrategy::NAMES {
        assert!(DOCS.contains(&format!("\n| `{name}`")), "{name}");
    }
}
