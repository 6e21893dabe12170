//! The arrows between the crates, as ARCHITECTURE.md draws them.
//!
//! A library that depends on less can be used in more places and tested with
//! less; each arrow that is not drawn is a promise to somebody who embeds a
//! crate. The first test compares the edges inside the workspace, exactly. The
//! others look at what a crate brings along from outside, as an embedder would
//! get it with every feature on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What each member may use of the others, and must: an arrow that is drawn
/// and not used is as wrong as one that is used and not drawn.
const ARROWS: &[(&str, &[&str])] = &[
    ("evenkeel-threshold", &[]),
    ("evenkeel-consul", &[]),
    ("evenkeel-zone-weights", &[]),
    ("evenkeel-xds", &[]),
    ("evenkeel-engine", &["evenkeel-threshold"]),
    ("evenkeel-probe", &["evenkeel-threshold"]),
    ("evenkeel-replay", &["evenkeel-threshold"]),
    (
        "evenkeel",
        &[
            "evenkeel-consul",
            "evenkeel-engine",
            "evenkeel-probe",
            "evenkeel-replay",
            "evenkeel-threshold",
            "evenkeel-xds",
            "evenkeel-zone-weights",
        ],
    ),
];

/// Members that use the product and are used by nothing: no arrow is drawn for
/// them, and none may lead to them.
const USERS: &[&str] = &["evenkeel-benches", "evenkeel-examples"];

/// Members that only tests use: servers to talk to. A normal dependency on one
/// would ship it.
const TEST_MEMBERS: &[&str] = &["evenkeel-testkit"];

/// What may come along with a crate, all features on, procedural macros and
/// build scripts aside. For the crates whose point is that they bring nothing.
const ALLOWED: &[(&str, &[&str])] = &[
    ("evenkeel-threshold", &["libm", "serde", "serde_core"]),
    (
        "evenkeel-engine",
        &["evenkeel-threshold", "libm", "thiserror"],
    ),
    ("evenkeel-zone-weights", &[]),
];

/// What must never come along, at any depth.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "evenkeel-threshold",
        &["tokio", "futures-core", "tracing", "log", "chrono", "time"],
    ),
    (
        "evenkeel-engine",
        &[
            "tokio",
            "hyper",
            "http",
            "serde",
            "serde_core",
            "rand",
            "rand_core",
            "getrandom",
        ],
    ),
    ("evenkeel-probe", &["evenkeel-consul", "evenkeel-engine"]),
    (
        "evenkeel-replay",
        &["tokio", "hyper", "evenkeel-consul", "evenkeel-engine"],
    ),
    (
        "evenkeel-consul",
        &[
            "evenkeel-threshold",
            "evenkeel-engine",
            "evenkeel-probe",
            "clap",
            "figment",
        ],
    ),
    (
        "evenkeel-xds",
        &[
            "evenkeel-zone-weights",
            "evenkeel-consul",
            "clap",
            "figment",
        ],
    ),
    // TLS is rustls with ring, one implementation in the whole program.
    (
        "evenkeel",
        &[
            "openssl",
            "openssl-sys",
            "native-tls",
            "aws-lc-rs",
            "aws-lc-sys",
            "reqwest",
        ],
    ),
];

/// Pure without their default features: no runtime, no sockets.
const PURE_WITHOUT_DEFAULTS: &[(&str, &[&str])] = &[(
    "evenkeel-consul",
    &["tokio", "hyper", "hyper-util", "rustls"],
)];

/// For tests only; in a library they would be somebody else's build time.
const TEST_SUPPORT: &[&str] = &[
    "cargo_metadata",
    "proptest",
    "rand_chacha",
    "rcgen",
    "roxmltree",
];

fn root() -> &'static Path {
    // crates/evenkeel, two levels down.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the workspace holds this crate")
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Without the network: what is built here has been fetched for this platform
/// and no other, so the questions are asked for this one.
fn metadata() -> Metadata {
    let version = Command::new(cargo())
        .arg("-vV")
        .output()
        .expect("cargo runs");
    let version = String::from_utf8(version.stdout).expect("cargo prints UTF-8");
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("cargo names its host");
    MetadataCommand::new()
        .cargo_path(cargo())
        .current_dir(root())
        .other_options(
            [
                "--locked",
                "--offline",
                "--all-features",
                "--filter-platform",
                host,
            ]
            .map(str::to_owned),
        )
        .exec()
        .expect("cargo metadata runs")
}

fn members(metadata: &Metadata) -> BTreeMap<String, &Package> {
    metadata
        .workspace_packages()
        .into_iter()
        .map(|package| (package.name.to_string(), package))
        .collect()
}

/// Names of everything that `package` brings along for its users, itself not
/// among them. `cargo tree` for one package resolves its features alone, while
/// the graph of `cargo metadata` has those of all members together.
fn brought_along(package: &str, features: &str) -> BTreeSet<String> {
    let output = Command::new(cargo())
        .current_dir(root())
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package",
            package,
            features,
        ])
        .args([
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .output()
        .expect("cargo tree runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .expect("cargo prints UTF-8")
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != package)
        .map(str::to_owned)
        .collect()
}

#[test]
fn arrows_between_members_are_exactly_those_drawn() {
    let metadata = metadata();
    let members = members(&metadata);
    let drawn: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();

    for (name, package) in &members {
        let used: BTreeSet<&str> = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| dependency.name.as_str())
            .filter(|used| members.contains_key(*used))
            .collect();
        // A benchmark measures against a real server, as a test does.
        let servers = TEST_MEMBERS
            .iter()
            .filter(|_| !USERS.contains(&name.as_str()));
        for other in USERS.iter().chain(servers) {
            assert!(!used.contains(other), "{name} depends on {other}");
        }
        if USERS.contains(&name.as_str()) || TEST_MEMBERS.contains(&name.as_str()) {
            continue;
        }
        let drawn = drawn
            .get(name.as_str())
            .unwrap_or_else(|| panic!("{name} is new: draw its arrows here"));
        assert_eq!(
            &used, drawn,
            "arrows of {name}: left what it uses, right what is drawn"
        );
    }
    for name in drawn.keys() {
        assert!(
            members.contains_key(*name),
            "{name} is drawn and not a member"
        );
    }
}

/// A test may use a sibling that the crate itself must not, but not in a
/// circle: then the crate would exist twice in one test.
#[test]
fn tests_use_no_sibling_that_depends_on_the_crate_under_test() {
    let metadata = metadata();
    let members = members(&metadata);
    for (name, package) in &members {
        for dependency in &package.dependencies {
            if dependency.kind == DependencyKind::Development
                && members.contains_key(&dependency.name)
            {
                let along = brought_along(&dependency.name, "--all-features");
                assert!(
                    !along.contains(name),
                    "the tests of {name} use {}, which uses {name}",
                    dependency.name
                );
            }
        }
    }
}

#[test]
fn small_crates_bring_along_only_what_is_listed() {
    for (package, allowed) in ALLOWED {
        let along = brought_along(package, "--all-features");
        let unlisted: Vec<_> = along
            .iter()
            .filter(|name| !allowed.contains(&name.as_str()))
            .collect();
        assert!(unlisted.is_empty(), "{package} brings along {unlisted:?}");
    }
}

#[test]
fn nothing_forbidden_is_brought_along() {
    for (package, forbidden) in FORBIDDEN {
        let along = brought_along(package, "--all-features");
        let found: Vec<_> = forbidden
            .iter()
            .filter(|name| along.contains(**name))
            .collect();
        assert!(found.is_empty(), "{package} brings along {found:?}");
    }
    for (package, forbidden) in PURE_WITHOUT_DEFAULTS {
        let along = brought_along(package, "--no-default-features");
        let found: Vec<_> = forbidden
            .iter()
            .filter(|name| along.contains(**name))
            .collect();
        assert!(
            found.is_empty(),
            "{package} without default features brings along {found:?}"
        );
    }
}

#[test]
fn test_support_is_a_dependency_of_tests_only() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        for dependency in &package.dependencies {
            assert!(
                dependency.kind == DependencyKind::Development
                    || USERS.contains(&name.as_str())
                    || TEST_MEMBERS.contains(&name.as_str())
                    || !TEST_SUPPORT.contains(&dependency.name.as_str()),
                "{name} depends on {} outside of its tests",
                dependency.name
            );
        }
    }
}

#[test]
fn every_member_declares_the_floor_and_inherits_the_lints() {
    let metadata = metadata();
    let workspace = manifest(&root().join("Cargo.toml"));
    let floor = workspace["workspace"]["package"]["rust-version"]
        .as_str()
        .expect("the floor is a text");
    // "1.88" and "1.88.0" are the same floor; cargo reports the second.
    let floor = format!("{floor}.0");

    for (name, package) in members(&metadata) {
        let declared = package.rust_version.as_ref().map(ToString::to_string);
        assert_eq!(
            declared.as_deref(),
            Some(floor.as_str()),
            "rust-version of {name}"
        );

        let manifest = manifest(package.manifest_path.as_std_path());
        let inherits = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        assert_eq!(
            inherits,
            Some(true),
            "{name} does not inherit the workspace's lints"
        );
    }
}

/// Nothing in the tree may need a newer compiler than the floor says.
#[test]
fn no_dependency_needs_a_newer_compiler_than_the_floor() {
    let metadata = metadata();
    let floor = metadata.workspace_packages()[0]
        .rust_version
        .clone()
        .expect("checked by another test");
    let newer: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| {
            package
                .rust_version
                .as_ref()
                .is_some_and(|needed| *needed > floor)
        })
        .map(|package| {
            format!(
                "{} {} needs {}",
                package.name,
                package.version,
                package.rust_version.as_ref().expect("filtered")
            )
        })
        .collect();
    assert!(newer.is_empty(), "{newer:#?}");
}

/// A feature of a dependency is somebody's decision, in the crate that needs
/// it; defaults are nobody's.
#[test]
fn dependencies_come_without_default_features() {
    let workspace = manifest(&root().join("Cargo.toml"));
    let shared = workspace["workspace"]["dependencies"]
        .as_table()
        .expect("a table");
    for (name, value) in shared {
        let off = value.get("default-features").and_then(toml::Value::as_bool);
        assert_eq!(off, Some(false), "{name} in [workspace.dependencies]");
    }

    let metadata = metadata();
    for (member, package) in members(&metadata) {
        let manifest = manifest(package.manifest_path.as_std_path());
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in manifest
                .get(section)
                .and_then(toml::Value::as_table)
                .into_iter()
                .flatten()
            {
                let flag = |key| value.get(key).and_then(toml::Value::as_bool);
                assert!(
                    flag("workspace") == Some(true) || flag("default-features") == Some(false),
                    "{name} in [{section}] of {member} has default features"
                );
            }
        }
    }
}

/// A dependency list cannot tell: `std` and `alloc` need no entry in it.
#[test]
fn threshold_uses_neither_std_nor_alloc() {
    let source = root().join("crates/threshold/src");
    let lib = std::fs::read_to_string(source.join("lib.rs")).expect("the crate is there");
    assert!(
        lib.lines().any(|line| line.trim() == "#![no_std]"),
        "threshold is no_std, without a condition"
    );

    let mut folders = vec![source];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            let mut for_tests = false;
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default().trim();
                if code.starts_with("extern crate std") || code.starts_with("extern crate alloc") {
                    assert!(for_tests, "{}:{}: {line}", path.display(), number + 1);
                }
                for_tests = code == "#[cfg(test)]";
            }
        }
    }
}

fn manifest(path: &Path) -> toml::Table {
    std::fs::read_to_string(path)
        .expect("the manifest is there")
        .parse()
        .expect("cargo has read it too")
}
