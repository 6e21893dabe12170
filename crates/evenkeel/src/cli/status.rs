//! `status`: what a running daemon says of its checks.

use std::io::IsTerminal as _;

use super::{StatusArguments, admin, output};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::status::{StatusFilter, StatusReport, Style, render};

/// Shows the status, and whether the daemon is ready.
pub(super) fn run(
    arguments: &StatusArguments,
    admin: Option<&str>,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    let filter = StatusFilter {
        node: arguments.node.clone(),
        service: arguments.service.clone(),
        check: arguments.check.clone(),
        status: arguments
            .status
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error| Failure::new(Exit::Usage, format!("--status: {error}")))?,
    };
    let path = format!("/v1/status?{}", filter.to_query());
    let told = admin::ask::<StatusReport>(&path, admin, environment)?;
    if json {
        output::print(&told.text)?;
    } else {
        let style = match std::io::stdout().is_terminal() {
            true => Style::Colour,
            false => Style::Plain,
        };
        output::print(&render(&told.value, style))?;
    }
    Ok(Exit::Ok)
}
