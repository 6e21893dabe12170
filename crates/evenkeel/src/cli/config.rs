//! `config`: check, show, example, schema.

use std::path::PathBuf;

use serde_json::json;

use super::{ConfigCommand, LayerArguments, output};
use crate::catalog::file::{File, FileCatalog};
use crate::config::{self, CatalogKind, Loaded, Settings};
use crate::document;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};

pub(super) fn run(
    command: &ConfigCommand,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Check(layers) => return check(layers, json, environment),
        ConfigCommand::Show(layers) => {
            let loaded = config::load(&layers.inputs(), environment);
            if !loaded.faults.is_empty() {
                return Err(refused(&loaded));
            }
            match json {
                true => output::print_json(&config::show_as_json(&loaded))?,
                false => output::print(&config::show_as_text(&loaded))?,
            }
        }
        ConfigCommand::Example => output::print(&config::example())?,
        ConfigCommand::Schema { checks: false } => {
            output::print_json(&document::schema::<Settings>())?;
        }
        ConfigCommand::Schema { checks: true } => output::print_json(&document::schema::<File>())?,
    }
    Ok(Exit::Ok)
}

fn refused(loaded: &Loaded) -> Failure {
    Failure {
        exit: Exit::Config,
        messages: loaded.faults.iter().map(ToString::to_string).collect(),
    }
}

/// Everything that would keep `run` from starting, in the file of checks as
/// well.
fn check(layers: &LayerArguments, json: bool, environment: &Environment) -> Result<Exit, Failure> {
    let loaded = config::load(&layers.inputs(), environment);
    let told = |fault: &config::Fault| {
        let origin = fault.origin.to_string();
        json!({ "origin": origin, "key": fault.key, "text": fault.text })
    };
    let mut faults: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
    let mut faults_as_json: Vec<serde_json::Value> = loaded.faults.iter().map(told).collect();
    let warnings_as_json: Vec<serde_json::Value> = loaded.warnings.iter().map(told).collect();
    let mut warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let mut watched = String::new();
    let mut also = |text: String| {
        faults_as_json.push(json!({ "origin": "", "key": "", "text": text }));
        faults.push(text);
    };
    for (key, path) in named_files(&loaded.settings) {
        let found = match path.is_dir() {
            true => std::fs::read_dir(&path).map(drop),
            false => crate::document::open_file(&path).map(drop),
        };
        if let Err(error) = found {
            let origin = loaded.origin(key);
            also(format!("{origin}: {key}: {}: {error}", path.display()));
        }
    }
    if loaded.nothing_to_watch {
        also("nothing to watch: set consul.address or file.path".to_owned());
    }
    match loaded.settings.catalog {
        Some(CatalogKind::File) if loaded.settings.file.path.is_some() => {
            match FileCatalog::open(&loaded.settings) {
                Ok(catalog) => {
                    let parsed = catalog.parsed();
                    warnings.extend(parsed.warnings.iter().map(ToString::to_string));
                    watched = format!("the checks of a file, {} in number", parsed.checks.len());
                }
                Err(failure) => failure.messages.into_iter().for_each(&mut also),
            }
        }
        Some(CatalogKind::Consul) => {
            watched = format!("the Consul at {}", loaded.settings.consul.address);
        }
        Some(CatalogKind::File) | None => {}
    }
    let ok = faults.is_empty();
    if json {
        let value = json!({ "ok": ok, "faults": faults_as_json, "warnings": warnings_as_json });
        output::print_json(&value)?;
        return Ok(if ok { Exit::Ok } else { Exit::Config });
    }
    for warning in &warnings {
        output::tell(&format!("evenkeel: warning: {warning}\n"));
    }
    if ok {
        output::print(&format!(
            "The configuration is right; it watches {watched}.\n"
        ))?;
        return Ok(Exit::Ok);
    }
    Err(Failure {
        exit: Exit::Config,
        messages: faults,
    })
}

/// The files that the settings name, which `run` would read.
fn named_files(settings: &Settings) -> Vec<(&'static str, PathBuf)> {
    let (consul, probe) = (&settings.consul, &settings.probe);
    let files = [
        ("consul.token_file", &consul.token_file),
        ("consul.ca_file", &consul.ca_file),
        ("consul.ca_path", &consul.ca_path),
        ("consul.cert_file", &consul.cert_file),
        ("consul.key_file", &consul.key_file),
        ("probe.https_ca_file", &probe.https_ca_file),
        ("probe.https_ca_path", &probe.https_ca_path),
        ("probe.https_cert_file", &probe.https_cert_file),
        ("probe.https_key_file", &probe.https_key_file),
        ("admin.token_file", &settings.admin.token_file),
    ];
    files
        .into_iter()
        .filter_map(|(key, path)| Some((key, path.clone()?)))
        .collect()
}
