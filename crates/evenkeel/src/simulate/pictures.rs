//! Pictures of an outcome, as files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use evenkeel_replay::{CheckOutcome, Outcome, draw};

use super::Pictures;
use crate::exit::{Exit, Failure};

/// Names of files are no longer than this.
const LONGEST_NAME: usize = 100;

/// Writes them and says which.
pub(super) fn write(outcome: &Outcome, wanted: &Pictures) -> Result<Vec<PathBuf>, Failure> {
    let directory = &wanted.directory;
    fs::create_dir_all(directory).map_err(|error| cannot(directory, &error))?;
    let mut written = Vec::new();
    let mut put = |name: String, svg: &str| {
        let path = directory.join(name);
        fs::write(&path, svg).map_err(|error| cannot(&path, &error))?;
        written.push(path);
        Ok(())
    };
    put(
        "delay-writes.svg".to_owned(),
        &draw::delay_over_writes(&outcome.strategies),
    )?;
    let names: Vec<&str> = outcome
        .strategies
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let mut taken = HashSet::new();
    for check in busiest(outcome, wanted.timelines) {
        if let Some(svg) = draw::timeline(check, &names) {
            put(
                format!("timeline-{}.svg", free_name(&check.name, &mut taken)),
                &svg,
            )?;
        }
    }
    Ok(written)
}

fn busiest(outcome: &Outcome, most: usize) -> Vec<&CheckOutcome> {
    let mut checks: Vec<&CheckOutcome> = outcome
        .checks
        .iter()
        .filter(|check| check.timeline.is_some())
        .collect();
    checks.sort_by(|one, other| {
        other
            .changes
            .cmp(&one.changes)
            .then_with(|| one.name.cmp(&other.name))
    });
    checks.truncate(most);
    checks
}

/// The name of a check as a part of a file's name: it may have any character.
fn free_name(check: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    let base: String = check.chars().take(LONGEST_NAME).map(plain).collect();
    let mut name = base.clone();
    let mut number = 2;
    // Some file systems make no difference between cases.
    while !taken.insert(name.to_ascii_lowercase()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::CannotCreate, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless_and_differ() {
        let mut taken = HashSet::new();
        for (check, expected) in [
            ("web", "web"),
            ("../../etc/passwd", ".._.._etc_passwd"),
            ("Web", "Web-2"),
            ("a/b", "a_b"),
            ("a b", "a_b-2"),
            ("a-2", "a-2"),
            ("\u{1b}[2Jé", "__2J_"),
        ] {
            assert_eq!(free_name(check, &mut taken), expected);
        }
        assert_eq!(free_name(&"x".repeat(5000), &mut taken).len(), LONGEST_NAME);
    }
}
