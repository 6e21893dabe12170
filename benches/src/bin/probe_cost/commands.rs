use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use evenkeel_benches::peers::Peers;
use evenkeel_probe::{DockerCheck, Prober, ProberSettings, ScriptCheck};

use crate::run::Run;
use crate::{Contender, Failable};

/// What is run: it does nothing, so that starting it is what costs.
const PROGRAM: &str = "/bin/true";

/// A program on this machine, its own time included.
pub(crate) fn script(run: Run, spawn: &Path) -> Failable<Vec<Contender<'_>>> {
    let run = Run {
        with_children: true,
        ..run
    };
    let mut settings = ProberSettings::default();
    settings.scripts = true;
    let prober = Prober::new(settings)?;
    let definitions = [Rc::new(ScriptCheck::new([PROGRAM])?.into())];
    Ok(vec![
        Contender::new("floor script", move || {
            let output = Command::new(spawn)
                .args([run.probes, run.rate].map(|number| number.to_string()))
                .arg(PROGRAM)
                .output()?;
            let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
            if result["failures"] != 0 {
                return Err(format!("spawn: {result}").into());
            }
            Ok(result["cpu_us_per_probe"].as_f64().ok_or("no figure")?)
        }),
        Contender::new("prober script", move || run.prober(&prober, &definitions)),
    ])
}

/// A command in a container, without the engine's part: an engine is played. It
/// has no floor: it is five calls of an API over HTTP, made by the client
/// library that everybody uses.
pub(crate) fn docker(run: Run, peers: &Peers) -> Failable<Vec<Contender<'static>>> {
    let mut settings = ProberSettings::default();
    settings.docker = Some(peers.engine("good"));
    let definitions = [Rc::new(DockerCheck::new("web", ["true"])?.into())];
    // The client and its connections belong to a runtime, and each round has its own.
    Ok(vec![Contender::new("prober docker", move || {
        run.prober(&Prober::new(settings.clone())?, &definitions)
    })])
}
