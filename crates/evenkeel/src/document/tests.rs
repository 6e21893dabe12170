use std::path::Path as FilePath;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Sample {
    /// The name.
    name: String,
    #[serde(default)]
    count: u8,
    #[serde(default)]
    words: Vec<Word>,
    #[serde(default)]
    inner: Option<Inner>,
    #[serde(default)]
    tags: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Word {
    Red,
    Green,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Inner {
    on: bool,
}

fn faults(text: &str, format: Format) -> Vec<String> {
    let mut node = match read(text.as_bytes(), format) {
        Ok(node) => node,
        Err((_, faults)) => return faults.iter().map(ToString::to_string).collect(),
    };
    let faults = verify(&mut node, &Shape::of::<Sample>(), &|_, _| None);
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn all_faults_are_told_at_once_with_their_lines() {
    let toml = "cuont = 1\ncount = 256\nwords = [\"red\", \"gren\", 5]\n\n[inner]\non = \"yes\"\noff = 1\n\
                [tags]\na = 1\nb = \"x\"\n";
    assert_eq!(
        faults(toml, Format::Toml),
        [
            "line 1: name: missing",
            "line 1: cuont: unknown key; did you mean count?",
            "line 2: count: 256 is more than 255",
            "line 3: words[1]: \"gren\" is none of red, green; did you mean \"green\"?",
            "line 3: words[2]: expected text, found a whole number",
            "line 6: inner.on: expected true or false, found text",
            "line 7: inner.off: unknown key",
            "line 9: tags.a: expected text, found a whole number",
        ]
    );
    let json = "{\n \"cuont\": 1,\n \"name\": null,\n \"words\": [\n  \"blue\"],\n \"inner\": null,\n \"count\": 1.5\n}";
    assert_eq!(
        faults(json, Format::Json),
        [
            "line 2: cuont: unknown key; did you mean count?",
            "line 3: name: expected text, found null",
            "line 5: words[0]: \"blue\" is none of red, green",
            "line 7: count: expected a whole number, found a number",
        ]
    );
}

#[test]
fn syntax_faults_are_told_with_their_lines() {
    let found = faults("name = \n[inner]\ncount = 1\ncount = 2\n", Format::Toml);
    let lines: Vec<&str> = found.iter().map(|fault| &fault[..7]).collect();
    assert_eq!(lines, ["line 1:", "line 4:"], "{found:?}");

    let found = faults("{\n \"name\": \"x\",\n}", Format::Json);
    assert_eq!(found, ["line 3: key must be a string"]);
    let found = faults("{\"name\": \"x\",\n \"name\": \"y\"}", Format::Json);
    assert_eq!(found, ["line 2: name: given twice"]);
    assert_eq!(
        faults("[]", Format::Json),
        ["line 1: expected a table ({ … }), found a list"]
    );
    let Err((_, found)) = read(b"a = 1\nb = \"\xff\"", Format::Toml) else {
        panic!("not UTF-8");
    };
    assert_eq!(found[0].to_string(), "line 2: not UTF-8");
}

#[test]
fn what_fits_stays_and_reads_into_the_type() {
    let text = "name = \"x\"\ncount = 300\nwords = [\"red\", 1, \"green\"]\nextra = 1\n";
    let mut node = read(text.as_bytes(), Format::Toml).unwrap();
    assert_eq!(
        verify(&mut node, &Shape::of::<Sample>(), &|_, _| None).len(),
        3
    );
    let sample: Sample = serde_json::from_value(node.to_json()).unwrap();
    assert_eq!(sample.words, [Word::Red, Word::Green]);
    assert_eq!(sample.count, 0);
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    assert_eq!(faults("\u{feff}name = \"x\"", Format::Toml), [""; 0]);
    assert_eq!(faults("\u{feff}{\"name\": \"x\"}", Format::Json), [""; 0]);
}

#[test]
fn the_format_is_known_by_the_name() {
    assert_eq!(Format::of(FilePath::new("a/b.JSON")), Format::Json);
    assert_eq!(Format::of(FilePath::new("a/b.toml")), Format::Toml);
    assert_eq!(Format::of(FilePath::new("a/b")), Format::Toml);
}

#[test]
fn deep_nesting_is_refused_in_bounded_time() {
    for (text, format) in [
        (
            format!("{{\"a\": {}1{}}}", "[".repeat(20_000), "]".repeat(20_000)),
            Format::Json,
        ),
        (
            format!("a = {}1{}", "[".repeat(20_000), "]".repeat(20_000)),
            Format::Toml,
        ),
        (
            format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000)),
            Format::Json,
        ),
        (format!("{}a = 1", "a.".repeat(20_000)), Format::Toml),
        (format!("[{}a]", "a.".repeat(20_000)), Format::Toml),
    ] {
        assert!(read(text.as_bytes(), format).is_err());
    }
}

#[test]
fn a_value_is_read_as_json_or_toml() {
    let place = Place::Named("X".into());
    for text in ["[{\"a\": 1}]", "[{a = 1}]"] {
        let node = read_value(text, &place).unwrap();
        assert_eq!(node.to_json(), serde_json::json!([{"a": 1}]), "{text}");
        let Value::List(nodes) = node.value else {
            panic!("{text}")
        };
        assert_eq!(nodes[0].get("a").unwrap().place, place);
    }
    assert!(read_value("[1, ", &place).is_err());
    assert!(read_value("", &place).is_err());
}

/// A tree as serde_json reads it, for comparison: numbers that are no `i64`
/// aside, both readers must agree.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e9_f64..1e9).prop_map(|number| (number + 0.5).into()),
        "\\PC{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..6)
                .prop_map(|map| { serde_json::Value::Object(map.into_iter().collect()) }),
        ]
    })
}

proptest! {
    #[test]
    fn json_reads_as_serde_json_does(value in prop::collection::btree_map("\\PC{0,6}", json(), 0..6)) {
        let value = serde_json::Value::Object(value.into_iter().collect());
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let node = read(text.as_bytes(), Format::Json).unwrap();
            prop_assert_eq!(node.to_json(), value.clone());
        }
    }

    #[test]
    fn garbage_never_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in "([\\[\\]{}\"'=:,.\\n#]|name|true|[0-9]|a|\\PC){0,60}",
    ) {
        let shape = Shape::of::<Sample>();
        for format in [Format::Toml, Format::Json] {
            for text in [bytes.as_slice(), text.as_bytes()] {
                let mut node = match read(text, format) {
                    Ok(node) | Err((node, _)) => node,
                };
                verify(&mut node, &shape, &|_, _| None);
            }
        }
        let _ = read_value(&text, &Place::Unknown);
    }

    #[test]
    fn a_path_put_is_found(path in prop::collection::vec("[a-c]", 1..4), other in prop::collection::vec("[a-c]", 1..4)) {
        let mut root = Node::table();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let other: Vec<&str> = other.iter().map(String::as_str).collect();
        root.put(&other, Node::new(Place::Unknown, Value::Integer(1)));
        root.put(&path, Node::new(Place::Unknown, Value::Integer(2)));
        prop_assert_eq!(&root.find(&path.join(".")).unwrap().value, &Value::Integer(2));
        prop_assert!(root.take(&path.join(".")).is_some());
        prop_assert!(root.find(&path.join(".")).is_none());
    }
}
