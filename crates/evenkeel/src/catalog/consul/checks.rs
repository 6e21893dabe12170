use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_consul::types::{FieldFault, HealthCheck};
use evenkeel_consul::write::WriteForm;
use evenkeel_engine::{CatalogCheck, CheckId, output_hash};
use evenkeel_threshold::Status;

use crate::catalog::consul::definition::{
    Commands, NODE_HEALTH_CHECK, Probed, probed, without_effect,
};
use crate::catalog::consul::metadata::{Known, Metadata};
use crate::catalog::consul::missing::Missing;
use crate::catalog::consul::start::MOST;
use crate::catalog::{CatalogFault, CatalogView, Definition, Token, Unsupported, Watched};
use crate::thresholds::{DefinitionThresholds, Resolver, Sources};

/// What is kept of one check of the list.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    definition: Arc<Definition>,
    interval: Duration,
    status: Status,
    output_hash: u64,
    index: u64,
    form: WriteForm,
    deregister_after: Option<Duration>,
    service_name: Arc<str>,
    name: Box<str>,
    /// Only notes that may have a directive in them.
    notes: Option<Box<str>>,
    fields: Option<Fields>,
}

/// Threshold fields of the definition, which newer servers send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    success_before_passing: Option<u32>,
    failures_before_warning: Option<u32>,
    failures_before_critical: Option<u32>,
}

/// The list of checks.
#[derive(Debug, Default)]
pub(super) struct Checks {
    entries: HashMap<CheckId, Entry>,
    unsupported: Vec<Unsupported>,
    faults: Vec<CatalogFault>,
    names: HashSet<Arc<str>>,
    /// Entries whose names cannot be read: any check may be one of them.
    nameless: usize,
}

/// A list while it comes in.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    list: Checks,
    default_timeout: Duration,
    minimum_interval: Duration,
    commands: Commands,
    taken: usize,
}

impl Incoming {
    /// `default_timeout` is for checks that set none; an interval below
    /// `minimum_interval` is a fault.
    pub(super) fn new(
        default_timeout: Duration,
        minimum_interval: Duration,
        commands: Commands,
    ) -> Self {
        Self {
            list: Checks::default(),
            default_timeout,
            minimum_interval,
            commands,
            taken: 0,
        }
    }

    /// Whether the list is longer than any real one; not all of it is kept then.
    pub(super) fn is_too_long(&self) -> bool {
        self.taken > MOST
    }

    /// The number of checks so far.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Takes in one check.
    pub(super) fn take(&mut self, check: &HealthCheck) {
        self.taken += 1;
        if check.check_id == NODE_HEALTH_CHECK || self.is_too_long() {
            return;
        }
        if check.faults.iter().any(|fault| names(&fault.path)) {
            self.list.nameless += 1;
            self.list.faults.push(CatalogFault {
                id: None,
                text: format!(
                    "an entry of the list of checks cannot be read ({}): {}",
                    check.reference(),
                    listed(&check.faults)
                ),
            });
            return;
        }
        let id = CheckId::new(
            &check.partition,
            &check.namespace,
            &check.node,
            &check.service_id,
            &check.check_id,
        );
        if !check.faults.is_empty() {
            self.list.faults.push(CatalogFault {
                id: Some(id.clone()),
                text: format!("fields cannot be read: {}", listed(&check.faults)),
            });
        }
        if check.faults.iter().any(|fault| fault.path == "ModifyIndex") {
            // Its status cannot be written without taking the risk of undoing
            // somebody else's write.
            self.list.unsupported.push(Unsupported {
                id,
                kind: "other",
                reason: "not probed: its ModifyIndex cannot be read".to_owned(),
            });
            return;
        }
        let definition = match probed(check, self.default_timeout, self.commands) {
            Probed::As(definition) => definition,
            Probed::Not { kind, reason } => {
                self.list.unsupported.push(Unsupported { id, kind, reason });
                return;
            }
        };
        if let Some(evenkeel_probe::Definition::Faulty(text)) = definition.probe() {
            self.list.faults.push(CatalogFault {
                id: Some(id.clone()),
                text: format!("the definition is wrong: {text}"),
            });
        }
        let unused = without_effect(check);
        if !unused.is_empty() {
            self.list.faults.push(CatalogFault {
                id: Some(id.clone()),
                text: format!(
                    "fields of the definition without effect: {}",
                    unused.join(", ")
                ),
            });
        }
        if let Some(text) = odd_interval(check, self.minimum_interval)
            && definition.probe().is_some()
        {
            self.list.faults.push(CatalogFault {
                id: Some(id.clone()),
                text: text.to_owned(),
            });
        }
        let fields = Fields {
            success_before_passing: check.definition.success_before_passing,
            failures_before_warning: check.definition.failures_before_warning,
            failures_before_critical: check.definition.failures_before_critical,
        };
        let none = Fields {
            success_before_passing: None,
            failures_before_warning: None,
            failures_before_critical: None,
        };
        let after = check.definition.deregister_critical_service_after.get();
        let interval = match definition {
            Definition::Heartbeat { silence } => silence,
            _ => check.definition.interval.get(),
        };
        let entry = Entry {
            definition: Arc::new(definition),
            interval,
            // A status that is none of the three is no good to anybody: critical
            // is what consumers make of it, and the first result puts it right.
            status: check
                .status()
                .map_or(Status::Critical, crate::daemon::from_consul),
            output_hash: output_hash(&check.output),
            index: check.modify_index,
            form: WriteForm::of(check),
            deregister_after: (!after.is_zero()).then_some(after),
            service_name: self.list.shared(&check.service_name),
            name: check.name.as_str().into(),
            notes: has_directive(&check.notes).then(|| check.notes.as_str().into()),
            fields: (fields != none).then_some(fields),
        };
        self.list.entries.insert(id, entry);
    }

    /// The list is complete. What is as it was shares its memory with `before`.
    pub(super) fn finish(mut self, before: &Checks) -> Checks {
        for (id, entry) in &mut self.list.entries {
            let Some(old) = before.entries.get(id) else {
                continue;
            };
            if *old.definition == *entry.definition {
                entry.definition = Arc::clone(&old.definition);
            }
            if old.form == entry.form {
                entry.form = old.form.clone();
            }
        }
        self.list
    }
}

/// Whether a field is one of those that name a check; the element as a whole
/// counts.
fn names(path: &str) -> bool {
    matches!(
        path,
        "" | "Node" | "CheckID" | "ServiceID" | "Namespace" | "Partition"
    )
}

fn listed(faults: &[FieldFault]) -> String {
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// What is to be said of an interval that is not taken as it is. (P044)
fn odd_interval(check: &HealthCheck, minimum: Duration) -> Option<&'static str> {
    let interval = check.definition.interval.get();
    if interval.is_zero() {
        let said = |fault: &FieldFault| fault.path == "Definition.Interval";
        // One that cannot be read has its own line.
        (!check.faults.iter().any(said))
            .then_some("the interval is missing or zero: the default is taken")
    } else if interval < minimum {
        Some("the interval is shorter than the minimum, which is taken")
    } else {
        None
    }
}

/// Whether a check's notes may have something for us. What exactly is a
/// directive is decided elsewhere.
fn has_directive(notes: &str) -> bool {
    notes
        .as_bytes()
        .windows(b"[evenkeel".len())
        .any(|window| window.eq_ignore_ascii_case(b"[evenkeel"))
}

/// Whose metadata are missing to know the thresholds of all checks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unknown {
    /// Names of services.
    pub(super) services: std::collections::BTreeSet<String>,
    /// Whether there are nodes.
    pub(super) nodes: bool,
}

impl Unknown {
    pub(super) fn is_empty(&self) -> bool {
        self.services.is_empty() && !self.nodes
    }
}

impl Checks {
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.unsupported.len()
    }

    /// Entries whose names cannot be read.
    pub(super) fn nameless(&self) -> usize {
        self.nameless
    }

    /// Checks of `self` that `now` has not, in any form.
    pub(super) fn missing_in(&self, now: &Self, kept: &HashSet<CheckId>) -> Missing {
        let unsupported: HashSet<&CheckId> =
            now.unsupported.iter().map(|entry| &entry.id).collect();
        let gone = self
            .entries
            .iter()
            .filter(|(id, _)| !now.entries.contains_key(*id) && !unsupported.contains(id))
            .map(|(id, entry)| (id.clone(), entry.service_name.to_string()));
        debug_assert!(kept.iter().all(|id| self.entries.contains_key(id)));
        Missing::new(gone.collect())
    }

    /// Takes over from `before` the entries that must be kept.
    pub(super) fn keep(&mut self, before: &Self, kept: &HashSet<CheckId>) {
        for id in kept {
            if let Some(entry) = before.entries.get(id) {
                self.entries.insert(id.clone(), entry.clone());
            }
        }
    }

    /// What must be read before [`Checks::view`] knows all thresholds.
    pub(super) fn unknown(&self, metadata: &Metadata) -> Unknown {
        let mut unknown = Unknown::default();
        for (id, entry) in &self.entries {
            unknown.nodes |= metadata.node(id.partition(), id.node()) == Known::No;
            if !id.service_id().is_empty()
                && instance(metadata, id) == Known::No
                && !metadata.is_unreadable(&entry.service_name)
                && !unknown.services.contains(&*entry.service_name)
            {
                unknown.services.insert(entry.service_name.to_string());
            }
        }
        unknown
    }

    /// Whether the metadata of a check's service and node are known.
    pub(super) fn is_known(&self, id: &CheckId, metadata: &Metadata) -> bool {
        metadata.node(id.partition(), id.node()) != Known::No
            && (id.service_id().is_empty()
                || instance(metadata, id) != Known::No
                || self
                    .entries
                    .get(id)
                    .is_some_and(|entry| metadata.is_unreadable(&entry.service_name)))
    }

    /// The list as the daemon takes it. Metadata that are not known count as
    /// none. Gives way to other tasks now and then.
    pub(super) async fn view(
        &self,
        metadata: &Metadata,
        resolver: &mut Resolver,
        epoch: u32,
        keep: &HashSet<CheckId>,
        degraded: Option<String>,
    ) -> CatalogView {
        /// A millisecond's worth.
        const BETWEEN_YIELDS: usize = 256;
        let mut checks = Vec::with_capacity(self.entries.len());
        for (number, (id, entry)) in self.entries.iter().enumerate() {
            if number % BETWEEN_YIELDS == BETWEEN_YIELDS - 1 {
                tokio::task::yield_now().await;
            }
            if !keep.contains(id) {
                checks.push(entry.watched(id, metadata, resolver, epoch));
            }
        }
        resolver.forget_unused();
        CatalogView {
            checks,
            keep: keep.clone(),
            unsupported: self.unsupported.clone(),
            faults: self.faults.clone(),
            degraded,
        }
    }

    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(shared) = self.names.get(name) {
            return Arc::clone(shared);
        }
        let shared: Arc<str> = name.into();
        self.names.insert(Arc::clone(&shared));
        shared
    }
}

fn instance<'a>(metadata: &'a Metadata, id: &CheckId) -> Known<'a> {
    metadata.instance(id.partition(), id.namespace(), id.node(), id.service_id())
}

impl Entry {
    fn watched(
        &self,
        id: &CheckId,
        metadata: &Metadata,
        resolver: &mut Resolver,
        epoch: u32,
    ) -> Watched {
        let service_meta = if id.service_id().is_empty() {
            None
        } else {
            meta(instance(metadata, id))
        };
        let sources = Sources {
            node: id.node(),
            service_name: &self.service_name,
            service_id: id.service_id(),
            check_name: &self.name,
            check_id: id.check_id(),
            definition: match self.fields {
                None => DefinitionThresholds::None,
                Some(fields) => DefinitionThresholds::Consul {
                    success_before_passing: fields.success_before_passing.map(i64::from),
                    failures_before_warning: fields.failures_before_warning.map(i64::from),
                    failures_before_critical: fields.failures_before_critical.map(i64::from),
                },
            },
            notes: self.notes.as_deref().unwrap_or(""),
            service_meta,
            node_meta: meta(metadata.node(id.partition(), id.node())),
        };
        let thresholds = resolver.resolve(&sources);
        Watched {
            check: CatalogCheck {
                id: id.clone(),
                definition: Arc::clone(&self.definition),
                interval: self.interval,
                timeout: self.definition.timeout(),
                status: self.status,
                output_hash: self.output_hash,
                token: Token::Consul {
                    epoch,
                    index: self.index,
                    form: self.form.clone(),
                },
                strategy: Arc::clone(&thresholds.strategy),
                first_result: thresholds.first_result,
                deregister_after: self.deregister_after,
            },
            thresholds,
        }
    }
}

fn meta<'a>(known: Known<'a>) -> Option<&'a BTreeMap<String, String>> {
    match known {
        Known::Yes(Some(meta)) => Some(meta),
        _ => None,
    }
}
