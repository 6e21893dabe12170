use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_zone_weights::envoy::{
    Decision, GateCheck, Settings, decide, gates, recalculation_counters,
};
use evenkeel_zone_weights::plan::{Demand, Plan, Problem, Publisher};
use evenkeel_zone_weights::{Counter, Locality, Routes};

use super::{RuleName, RuleSettings, ServiceView};

/// Callers, the service that they call, and the split between zones, at one
/// moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairView {
    /// Grows whenever anything in it changes.
    pub version: u64,
    /// The rule.
    pub rule: RuleName,
    /// The calling service.
    pub callers: Arc<ServiceView>,
    /// The called service.
    pub upstream: Arc<ServiceView>,
    /// What Envoy would have counted since the pair was first asked for.
    pub recalculations: Recalculations,
    planned: Planned,
}

/// How the requests of a zone are found out.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Planned {
    /// Envoy's rule, from the two services alone.
    Envoy(Settings),
    /// A plan for all callers of the group, and which of them this is.
    Plan(Arc<Plan>, usize),
    /// There is no plan, and why.
    Failed(String),
}

impl Planned {
    /// Whether the requests of this calling service go to the same places, whatever
    /// there is for others in the plan.
    fn splits_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plan(plan, service), Self::Plan(other, place)) => {
                let elsewhere = Locality::new("\0", "\0", "\0");
                plan.priorities() == other.priorities()
                    && plan.splits(*service).eq(other.splits(*place))
                    && plan.split(*service, &elsewhere) == other.split(*place, &elsewhere)
            }
            (one, other) => one == other,
        }
    }
}

/// Envoy's counters of recalculations, for each zone of the callers. Not
/// [`evenkeel_zone_weights::Counters`], which count the requests of many threads and
/// take 8 KiB for each zone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recalculations {
    zones: BTreeMap<Locality, [u64; Counter::ALL.len()]>,
}

impl Recalculations {
    /// What a proxy in `zone` has counted on each of its threads; all 0 for a zone
    /// that no caller is in.
    pub fn of(&self, zone: &Locality) -> impl Iterator<Item = (Counter, u64)> + use<> {
        let counts = self.zones.get(zone).copied().unwrap_or_default();
        Counter::ALL.into_iter().zip(counts)
    }

    /// The zones that anything was counted in.
    pub fn zones(&self) -> impl Iterator<Item = &Locality> {
        self.zones.keys()
    }

    fn count(&mut self, zone: &Locality, counter: Counter) {
        let counts = match self.zones.get_mut(zone) {
            Some(counts) => counts,
            None => self.zones.entry(zone.clone()).or_default(),
        };
        // `ALL` is in the order of the numbers.
        counts[counter as usize] += 1;
    }
}

impl PairView {
    /// Where the requests of a proxy in `zone` go; `None` if there is no plan.
    pub fn routes(&self, zone: &Locality) -> Option<Routes> {
        match &self.planned {
            Planned::Envoy(_) => Some(self.decision(zone)?.routes()),
            Planned::Plan(plan, service) => plan.routes(*service, zone),
            Planned::Failed(_) => None,
        }
    }

    /// What Envoy's rule makes of it; `None` with another rule.
    pub fn decision(&self, zone: &Locality) -> Option<Decision> {
        let Planned::Envoy(settings) = &self.planned else {
            return None;
        };
        let (callers, upstream) = (&self.callers.callers, &self.upstream.upstream);
        Some(decide(settings, Some(zone), Some(callers), upstream))
    }

    /// The gates of Envoy's rule; none with another rule.
    pub fn gates(&self, zone: &Locality) -> Vec<GateCheck> {
        let Planned::Envoy(settings) = &self.planned else {
            return Vec::new();
        };
        let (callers, upstream) = (&self.callers.callers, &self.upstream.upstream);
        gates(settings, Some(zone), Some(callers), upstream).into()
    }

    /// Why there are no weights, if there are none.
    pub fn failure(&self) -> Option<&str> {
        match &self.planned {
            Planned::Failed(why) => Some(why),
            Planned::Envoy(_) | Planned::Plan(..) => None,
        }
    }

    /// The zones that a caller or an endpoint is in.
    pub fn zones(&self) -> BTreeSet<Locality> {
        let callers = self.callers.callers.iter();
        let endpoints = self.upstream.upstream.priorities().iter();
        let endpoints = endpoints.flat_map(|members| members.iter());
        callers
            .chain(endpoints)
            .map(|(zone, _)| zone.clone())
            .collect()
    }

    /// The zone that is meant by `text`: `zone`, `region/zone` or
    /// `region/zone/sub-zone`. A zone alone means the one of that name, whatever
    /// its region.
    pub fn zone(&self, text: &str) -> Locality {
        let zones = self.zones();
        let exact = zones.iter().find(|zone| zone.to_string() == text);
        exact
            .or_else(|| zones.iter().find(|zone| zone.zone() == text))
            .cloned()
            .unwrap_or_else(|| {
                let mut names = text.splitn(3, '/');
                match (names.next(), names.next(), names.next()) {
                    (Some(region), Some(zone), rest) => {
                        Locality::new(region, zone, rest.unwrap_or_default())
                    }
                    _ => Locality::zone_only(text),
                }
            })
    }
}

/// The pairs of one called service and one rule. They are calculated together,
/// since the rule may weigh all callers against each other.
#[derive(Debug)]
pub(super) struct Group {
    rule: RuleName,
    /// In the order in which they came, which is that of the plan.
    callers: Vec<Caller>,
    publisher: Publisher,
}

#[derive(Debug)]
struct Caller {
    name: Arc<str>,
    recalculations: Recalculations,
    /// What was told last: versions of callers and endpoints, and the plan.
    told: Option<(u64, u64, Planned)>,
}

impl Group {
    pub(super) fn new(rule: RuleName, settings: &RuleSettings) -> Self {
        Self {
            rule,
            callers: Vec::new(),
            publisher: Publisher::new(settings.limits),
        }
    }

    pub(super) fn add(&mut self, callers: Arc<str>) {
        self.callers.push(Caller {
            name: callers,
            recalculations: Recalculations::default(),
            told: None,
        });
    }

    pub(super) fn remove(&mut self, callers: &str, settings: &RuleSettings) {
        self.callers.retain(|caller| *caller.name != *callers);
        // Its plan names services by their place.
        self.publisher = Publisher::new(settings.limits);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    pub(super) fn calls(&self, service: &str) -> bool {
        self.callers.iter().any(|caller| *caller.name == *service)
    }

    /// Whether weights are on their way, in steps: recalculate again when the
    /// next one is due.
    pub(super) fn under_way(&self) -> bool {
        self.publisher.under_way()
    }

    /// The views that are others from now on. One that nothing has changed for is
    /// not among them: that somebody else asks is no news, and no recalculation
    /// in an Envoy.
    pub(super) fn recalculate(
        &mut self,
        settings: &RuleSettings,
        upstream: &Arc<ServiceView>,
        view: impl Fn(&str) -> Arc<ServiceView>,
        version: u64,
    ) -> Vec<(Arc<str>, PairView)> {
        let callers: Vec<_> = self
            .callers
            .iter()
            .map(|caller| view(&caller.name))
            .collect();
        let plan = self.plan(settings, upstream, &callers);
        let mut views = Vec::new();
        for (service, (caller, callers)) in self.callers.iter_mut().zip(callers).enumerate() {
            let planned = match (self.rule.envoy(), &plan) {
                (Some(envoy), _) => Planned::Envoy(envoy),
                (None, Ok(plan)) => Planned::Plan(Arc::clone(plan), service),
                (None, Err(why)) => Planned::Failed(why.clone()),
            };
            let now = (callers.version, upstream.version, planned);
            if caller.told.as_ref().is_some_and(|told| {
                (told.0, told.1) == (now.0, now.1) && told.2.splits_like(&now.2)
            }) {
                continue;
            }
            let mut view = PairView {
                version,
                rule: self.rule,
                callers,
                upstream: Arc::clone(upstream),
                recalculations: Recalculations::default(),
                planned: now.2.clone(),
            };
            caller.told = Some(now);
            for (zone, _) in view.callers.callers.iter() {
                let closed = view.gates(zone).into_iter().find(|check| check.closed);
                for counter in recalculation_counters(closed.map(|check| check.gate)) {
                    caller.recalculations.count(zone, counter);
                }
            }
            view.recalculations = caller.recalculations.clone();
            views.push((Arc::clone(&caller.name), view));
        }
        views
    }

    fn plan(
        &mut self,
        settings: &RuleSettings,
        upstream: &ServiceView,
        callers: &[Arc<ServiceView>],
    ) -> Result<Arc<Plan>, String> {
        let Some(rule) = settings.planner(self.rule) else {
            return Err("Envoy's rule makes no plan".to_owned());
        };
        let demands: Vec<_> = callers
            .iter()
            .map(|callers| Demand::of_callers(&callers.callers))
            .collect();
        let problem = Problem::new(&upstream.upstream, &demands);
        let plan = rule.plan(&problem).map_err(|error| error.to_string())?;
        self.publisher.offer(&plan, &problem);
        let published = self.publisher.published().unwrap_or(&plan);
        Ok(Arc::new(published.clone()))
    }
}
