//! The evenkeel daemon. All it does is in the library; here the process's
//! arguments and environment are read.

use std::process::ExitCode;

use evenkeel::cli;
use evenkeel::environment::Environment;

fn main() -> ExitCode {
    let environment = Environment::from_os(std::env::vars_os());
    cli::main(std::env::args_os(), &environment).into()
}
