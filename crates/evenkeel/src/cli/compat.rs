//! Command lines as consul-esm has them: `-config-file=X` with one dash, and no
//! subcommand.

use std::ffi::OsString;

/// Long flags of consul-esm, with the name here.
const ONE_DASH: [(&str, &str); 4] = [
    ("-config-file", "--config-file"),
    ("-config-dir", "--config-dir"),
    ("-version", "--version"),
    ("-help", "--help"),
];

/// Flags that take a value and may stand before the subcommand.
const GLOBAL_WITH_VALUE: &str = "--admin";

/// The command line as clap is to see it; the first argument is the program.
pub(super) fn normalise(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    for argument in arguments.iter_mut().skip(1) {
        if argument == "--" {
            break;
        }
        if let Some(text) = argument.to_str() {
            let (name, rest) = match text.find('=') {
                Some(at) => text.split_at(at),
                None => (text, ""),
            };
            if let Some((_, long)) = ONE_DASH.iter().find(|(short, _)| *short == name) {
                *argument = OsString::from(format!("{long}{rest}"));
            }
        }
    }
    if arguments.len() == 2 && arguments[1] == "-v" {
        arguments[1] = OsString::from("--version");
    }
    if let Some(at) = bare_run(&arguments) {
        arguments.insert(at, OsString::from("run"));
    }
    arguments
}

/// Where `run` belongs, if the line has no subcommand but flags of `run`.
fn bare_run(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(argument) = arguments.get(at) {
        let text = argument.to_str()?;
        let name = text.split('=').next().unwrap_or(text);
        if name == "--config-file" || name == "--config-dir" {
            return Some(at);
        }
        if !text.starts_with('-') {
            return None;
        }
        at += if text == GLOBAL_WITH_VALUE { 2 } else { 1 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(line: &str) -> String {
        let arguments = line.split(' ').map(OsString::from);
        let normal = normalise(arguments);
        let texts: Vec<&str> = normal
            .iter()
            .map(|argument| argument.to_str().unwrap())
            .collect();
        texts.join(" ")
    }

    #[test]
    fn consul_esms_command_lines_run_the_daemon() {
        for (line, expected) in [
            ("e -config-file=a.hcl", "e run --config-file=a.hcl"),
            (
                "e -config-file a -config-dir b",
                "e run --config-file a --config-dir b",
            ),
            ("e --config-file a", "e run --config-file a"),
            ("e --json --config-dir a", "e --json run --config-dir a"),
            (
                "e --admin x --config-dir a",
                "e --admin x run --config-dir a",
            ),
            ("e run -config-file a", "e run --config-file a"),
            (
                "e config check -config-file a",
                "e config check --config-file a",
            ),
            ("e -version", "e --version"),
            ("e -v", "e --version"),
            ("e", "e"),
            ("e status", "e status"),
            ("e status -- -config-file", "e status -- -config-file"),
            ("e --help", "e --help"),
        ] {
            assert_eq!(normal(line), expected, "{line}");
        }
    }
}
