//! `demo`: the daemon on targets of its own, for people who want to see first.

use std::io::IsTerminal as _;
use std::time::Duration;

use super::DemoArguments;
use crate::config::duration;
use crate::demo::{self, View};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::shutdown;

/// Shows the demo until its time is over, or Ctrl-C.
pub(super) fn run(
    arguments: &DemoArguments,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    let length = length(arguments)?;
    let mut out = std::io::stdout();
    let view = if json {
        View::Json
    } else if out.is_terminal() && environment.get("TERM") != Some("dumb") {
        View::Live {
            unicode: speaks_unicode(environment),
        }
    } else {
        View::Lines
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?;
    let result = runtime.block_on(async {
        let requests = shutdown::requests(|| std::process::exit(i32::from(Exit::Cut.code())))
            .map_err(|error| Failure::new(Exit::Internal, format!("no signals: {error}")))?;
        demo::run(length, view, &mut out, requests).await
    });
    runtime.shutdown_background();
    result.map(|()| Exit::Ok)
}

fn length(arguments: &DemoArguments) -> Result<Option<Duration>, Failure> {
    if let Some(seconds) = arguments.seconds {
        return Ok(Some(Duration::from_secs(seconds.into())));
    }
    arguments
        .duration
        .as_deref()
        .map(|text| {
            duration::parse(text)
                .map_err(|error| Failure::new(Exit::Usage, format!("--duration: {error}")))
        })
        .transpose()
}

/// Whether the terminal's character set is UTF-8, as POSIX says it: the first of
/// these variables that is set counts.
fn speaks_unicode(environment: &Environment) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| environment.get(name))
        .is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}
