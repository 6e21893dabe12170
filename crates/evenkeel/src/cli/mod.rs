//! The command line: one shape for all commands, and what each one starts.

mod admin;
mod arguments;
mod compat;
mod config;
mod demo;
mod output;
mod probe;
mod run;
mod simulate;
mod status;
mod zones;

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::ErrorKind;

pub use arguments::{
    Arguments, BadRowsRule, Command, ConfigArguments, ConfigCommand, DemoArguments, LayerArguments,
    ProbeArguments, RunArguments, ShowZonesArguments, SimulateArguments, StatusArguments,
    VerifyZonesArguments, ZonesArguments, ZonesCommand,
};

use crate::environment::Environment;
use crate::exit::{Exit, Failure};

/// Does what the command line says; the first argument is the program's name.
pub fn main(arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> Exit {
    let arguments = compat::normalise(arguments);
    let json_log = wants_json_log(&arguments, environment);
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => dispatch(&arguments, environment),
        Err(error) => refuse(&error, json_log),
    }
}

fn dispatch(arguments: &Arguments, environment: &Environment) -> Exit {
    let json = arguments.json;
    let result = match &arguments.command {
        Command::Run(run) => return run::run(run, json, environment),
        Command::Demo(arguments) => demo::run(arguments, json, environment),
        Command::Status(status) => {
            status::run(status, arguments.admin.as_deref(), json, environment)
        }
        Command::Zones(zones) => zones::run(
            &zones.command,
            arguments.admin.as_deref(),
            json,
            environment,
        ),
        Command::Probe(arguments) => probe::run(arguments, json, environment),
        Command::Simulate(arguments) => simulate::run(arguments, json),
        Command::Config(config) => config::run(&config.command, json, environment),
    };
    result.unwrap_or_else(|failure| {
        output::complain(&failure, json);
        failure.exit
    })
}

/// Help and version are what was asked for; all else is a wrong command line.
fn refuse(error: &clap::Error, json_log: bool) -> Exit {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match output::print(&text) {
            Ok(()) => Exit::Ok,
            Err(Failure { exit, .. }) => exit,
        },
        _ if json_log => {
            run::start_json_log();
            tracing::error!("{}", text.trim_end());
            Exit::Usage
        }
        _ => {
            output::tell(&text);
            Exit::Usage
        }
    }
}

/// Whether the log is to be JSON as far as flags and variables say so. The
/// configuration is not read yet, and the command line may be wrong (P068).
fn wants_json_log(arguments: &[OsString], environment: &Environment) -> bool {
    let words: Vec<&str> = arguments
        .iter()
        .skip(1)
        .map_while(|argument| argument.to_str().filter(|text| *text != "--"))
        .collect();
    let one = words
        .iter()
        .any(|word| ["--json", "--log-format=json", "--set=log.format=json"].contains(word));
    let two = words
        .windows(2)
        .any(|pair| pair == ["--log-format", "json"] || pair == ["--set", "log.format=json"]);
    one || two || environment.get("EVENKEEL_LOG__FORMAT") == Some("json")
}
