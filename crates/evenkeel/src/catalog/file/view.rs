use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::{CatalogCheck, CheckId, output_hash};

use super::{Entry, FileFault, Parsed};
use crate::catalog::{CatalogView, Definition, Token, Watched};
use crate::thresholds::{DefinitionThresholds, Resolver, Source, Sources};

/// The checks of a file as the daemon takes them, and what is wrong with their
/// thresholds once they are merged with the daemon's.
pub fn view(
    parsed: &Parsed,
    default_timeout: Duration,
    resolver: &mut Resolver,
) -> (CatalogView, Vec<FileFault>) {
    let mut faults = Vec::new();
    let checks = parsed
        .checks
        .iter()
        .map(|(line, entry)| {
            let watched = watched(entry, default_timeout, resolver);
            let wrong = watched.thresholds.faults.iter();
            faults.extend(
                wrong
                    .filter(|fault| matches!(fault.source, Source::Definition | Source::Notes))
                    .map(|fault| FileFault {
                        line: *line,
                        check: Some(entry.name.clone()),
                        key: match fault.source {
                            Source::Notes => "notes".to_owned(),
                            _ => fault.key.clone(),
                        },
                        text: match (fault.source, fault.key.as_str()) {
                            (Source::Notes, key) if !key.is_empty() => {
                                format!("{key}: {}", fault.text)
                            }
                            _ => fault.text.clone(),
                        },
                    }),
            );
            watched
        })
        .collect();
    resolver.forget_unused();
    let view = CatalogView {
        checks,
        keep: HashSet::new(),
        unsupported: Vec::new(),
        faults: Vec::new(),
        degraded: None,
    };
    (view, faults)
}

fn watched(entry: &Entry, default_timeout: Duration, resolver: &mut Resolver) -> Watched {
    let service = entry.service.as_deref().unwrap_or_default();
    let thresholds = resolver.resolve(&Sources {
        node: &entry.node,
        service_name: service,
        service_id: service,
        check_name: &entry.name,
        check_id: entry.id(),
        definition: DefinitionThresholds::File(&entry.thresholds),
        notes: entry.notes.as_deref().unwrap_or_default(),
        service_meta: None,
        node_meta: None,
    });
    let definition = entry
        .definition(default_timeout)
        // The parser refuses such an entry; should one come here, it is seen.
        .unwrap_or_else(|error| {
            evenkeel_probe::Definition::Faulty(error.to_string().into()).into()
        });
    let interval = match definition {
        Definition::Heartbeat { silence } => silence,
        _ => entry.interval.unwrap_or_default(),
    };
    Watched {
        check: CatalogCheck {
            id: CheckId::new("", "", &entry.node, service, entry.id()),
            definition: Arc::new(definition),
            interval,
            timeout: entry.timeout.unwrap_or(default_timeout),
            status: entry.initial_status.into(),
            output_hash: output_hash(""),
            token: Token::File,
            strategy: Arc::clone(&thresholds.strategy),
            first_result: thresholds.first_result,
            deregister_after: None,
        },
        thresholds,
    }
}
