//! The log: text for people or JSON lines, on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// What a level of the settings lets through.
///
/// # Errors
///
/// A sentence for people.
pub fn filter(level: &str) -> Result<EnvFilter, String> {
    if level.trim().is_empty() {
        return Err("must not be empty: write \"info\"".to_owned());
    }
    EnvFilter::builder()
        .with_regex(false)
        .parse(level)
        .map_err(|error| format!("{level:?} is no level: {error}"))
}

/// Starts the log. To be called once, before anything else is started.
///
/// A panic is logged too, so that with JSON each line stays JSON.
pub fn start(settings: &LogSettings) {
    let filter = filter(&settings.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second start changes nothing; tests start more than one daemon.
    let _ = match settings.format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(colours).try_init()
        }
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_ansi(false)
            .try_init(),
    };
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a message");
        let place = panic
            .location()
            .map_or_else(String::new, |place| place.to_string());
        tracing::error!(place, "panic: {message}");
    }));
}
