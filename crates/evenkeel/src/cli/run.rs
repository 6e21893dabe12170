//! `run`: from the configuration to a daemon that has ended in order.

use tokio::sync::mpsc;

use super::{LayerArguments, RunArguments, output};
use crate::config::{self, Loaded, LogFormat, LogSettings, Settings};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::{daemon, logging, shutdown};

/// What `run` says when nothing tells what to watch.
const NOTHING_TO_WATCH: &str = "\
Nothing to watch: neither a Consul nor a file of checks is configured.

  evenkeel run --consul 127.0.0.1:8500
      watches the external nodes of this Consul: those whose metadata have
      external-node = \"true\".

  evenkeel run --file checks.toml
      watches the checks in this file. One can be as short as

          [[check]]
          name = \"shop answers\"
          http = \"https://shop.example/health\"

  evenkeel run --config-file evenkeel.toml
      reads all settings from a file. `evenkeel config example` prints one that
      explains each, and CONSUL_* and EVENKEEL_* variables set them, too.

  evenkeel demo
      shows what it is for, with targets of its own.
";

/// Runs the daemon. Failures have been logged when this returns.
pub(super) fn run(arguments: &RunArguments, json: bool, environment: &Environment) -> Exit {
    let loaded = load(&arguments.layers, json, environment);
    logging::start(&loaded.settings.log);
    let result = start(loaded, arguments, json, environment);
    match result {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            for message in &failure.messages {
                tracing::error!("{message}");
            }
            failure.exit
        }
    }
}

fn start(
    loaded: Loaded,
    arguments: &RunArguments,
    json: bool,
    environment: &Environment,
) -> Result<(), Failure> {
    if loaded.nothing_to_watch {
        return match loaded.settings.log.format {
            LogFormat::Json => Err(Failure::new(
                Exit::Config,
                "nothing to watch: give --consul ADDR, --file PATH or --config-file FILE",
            )),
            LogFormat::Text => {
                output::tell(NOTHING_TO_WATCH);
                Err(Failure {
                    exit: Exit::Config,
                    messages: Vec::new(),
                })
            }
        };
    }
    let settings = accept(loaded)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?;
    let result = runtime.block_on(async {
        let requests = shutdown::requests(|| std::process::exit(i32::from(Exit::Cut.code())))
            .map_err(|error| Failure::new(Exit::Internal, format!("no signals: {error}")))?;
        serve(settings, arguments, json, environment, requests).await
    });
    // What still runs has nothing to say any more; a blocked read of a file must
    // not keep the process.
    runtime.shutdown_background();
    result
}

async fn serve(
    settings: Settings,
    arguments: &RunArguments,
    json: bool,
    environment: &Environment,
    requests: mpsc::Receiver<shutdown::Request>,
) -> Result<(), Failure> {
    let (layers, again) = (arguments.layers.clone(), environment.clone());
    let reload = Box::new(move || accept(load(&layers, json, &again)));
    daemon::run(settings, environment, requests, reload).await
}

/// Reads all layers; `--json` is the last word on the form of the log.
fn load(layers: &LayerArguments, json: bool, environment: &Environment) -> Loaded {
    let mut inputs = layers.inputs();
    if json {
        inputs
            .flags
            .push(("log.format".into(), "json".into(), "--json".into()));
    }
    config::load(&inputs, environment)
}

/// The settings, if they may be used. Warnings are logged.
fn accept(loaded: Loaded) -> Result<Settings, Failure> {
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if loaded.nothing_to_watch {
        return Err(Failure::new(Exit::Config, "nothing to watch"));
    }
    if loaded.faults.is_empty() {
        return Ok(loaded.settings);
    }
    Err(Failure {
        exit: Exit::Config,
        messages: loaded.faults.iter().map(ToString::to_string).collect(),
    })
}

/// Starts the log before the configuration is known, for faults of the command
/// line itself.
pub(super) fn start_json_log() {
    logging::start(&LogSettings {
        format: LogFormat::Json,
        ..LogSettings::default()
    });
}
