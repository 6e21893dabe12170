use std::fs;
use std::net::IpAddr;
use std::pin::pin;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use tokio::time::Instant;

use super::{Resolve, ResolveError};
use crate::definition::Family;

/// The files are looked at for changes at most this often (Go's resolver: 5 s).
const RELOAD_AFTER: Duration = Duration::from_secs(5);

/// Some name servers, often in load balancers, never answer for the family
/// that they do not know. The name is good all the same. (RFC 8305 section 3
/// says 50 ms, for a person who waits; a probe rather sees both families.)
const OTHER_FAMILY_WITHIN: Duration = Duration::from_millis(500);

#[cfg(unix)]
const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
#[cfg(not(unix))]
const FILES: [&str; 0] = [];

/// The system's resolver configuration: its hosts file, name servers and
/// search list, read again when the files change.
///
/// Nothing is cached, neither answers nor failures: a probe must see what the
/// name servers say now. A busy installation has a caching name server beside
/// it.
#[derive(Default)]
pub struct SystemResolver {
    loaded: Mutex<Option<Loaded>>,
}

struct Loaded {
    snapshot: Arc<Snapshot>,
    files: [Option<SystemTime>; FILES.len()],
    looked: Instant,
}

struct Snapshot {
    hosts: Hosts,
    /// With the candidates' suffixes; the fault if there are no name servers.
    dns: Result<Dns, String>,
}

struct Dns {
    resolver: TokioResolver,
    search: Vec<Name>,
    ndots: usize,
}

impl SystemResolver {
    /// A resolver that reads its configuration when it is first asked.
    pub fn new() -> Self {
        Self::default()
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(loaded) = loaded.as_mut() {
            if now.duration_since(loaded.looked) < RELOAD_AFTER {
                return loaded.snapshot.clone();
            }
            loaded.looked = now;
            if loaded.files == modified() {
                return loaded.snapshot.clone();
            }
        }
        // Before the files are read, so that a change meanwhile is noticed later.
        let files = modified();
        let snapshot = match Hosts::from_system() {
            Ok(hosts) => Arc::new(Snapshot {
                hosts,
                dns: system_dns(),
            }),
            // A name that is only there must not be taken for unknown.
            Err(error) => Arc::new(Snapshot {
                hosts: Hosts::default(),
                dns: Err(format!("hosts: {error}")),
            }),
        };
        if snapshot.dns.is_err() {
            // It may be the want of a descriptor: no change of the files would end it.
            return snapshot;
        }
        *loaded = Some(Loaded {
            snapshot: snapshot.clone(),
            files,
            looked: now,
        });
        snapshot
    }
}

fn modified() -> [Option<SystemTime>; FILES.len()] {
    FILES.map(|path| fs::metadata(path).ok()?.modified().ok())
}

fn system_dns() -> Result<Dns, String> {
    let (config, mut options) = read_system_conf().map_err(|error| error.to_string())?;
    options.cache_size = 0;
    let mut search: Vec<Name> = config.search().to_vec();
    if search.is_empty() {
        search.extend(config.domain().cloned());
    }
    let ndots = options.ndots;
    // The search list is walked here, where it is seen which name failed how.
    let config = ResolverConfig::from_parts(None, Vec::new(), config.name_servers().to_vec());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    let resolver = builder.build().map_err(|error| error.to_string())?;
    Ok(Dns {
        resolver,
        search,
        ndots,
    })
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        self.resolve_family(name, Family::Any).await
    }

    async fn resolve_family(
        &self,
        name: &str,
        family: Family,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let snapshot = self.snapshot();
        // A name that DNS cannot have cannot be in it.
        let name = Name::from_str(name).map_err(|_| ResolveError::NotFound)?;
        let mut listed = snapshot.listed(&name);
        listed.retain(|ip| family.takes(*ip));
        if !listed.is_empty() {
            return Ok(listed);
        }
        match &snapshot.dns {
            Ok(dns) => dns.resolve(&name, family).await,
            Err(fault) => Err(ResolveError::Failed(fault.clone())),
        }
    }
}

impl Snapshot {
    /// The addresses in the hosts file. As in glibc (`hosts: files dns`), a
    /// name that is there, with an address of the family that is wanted, is not
    /// asked for elsewhere.
    fn listed(&self, name: &Name) -> Vec<IpAddr> {
        [RecordType::A, RecordType::AAAA]
            .into_iter()
            .filter_map(|family| {
                self.hosts
                    .lookup_static_host(&Query::query(name.clone(), family))
            })
            .flat_map(|lookup| {
                let records = lookup.answers().iter();
                records
                    .filter_map(|record| record.data.ip_addr())
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Dns {
    /// Asks for each candidate in turn. The first with an address wins; "not
    /// found" only if that is the answer for every one of them.
    async fn resolve(&self, name: &Name, family: Family) -> Result<Vec<IpAddr>, ResolveError> {
        let mut failure = None;
        for candidate in self.candidates(name) {
            let mut addresses = Vec::new();
            for answer in self.ask(candidate, family).await.into_iter().flatten() {
                match answer {
                    Ok(lookup) => {
                        addresses.extend(lookup.answers().iter().filter_map(|r| r.data.ip_addr()));
                    }
                    Err(error) if is_negative(&error) => {}
                    Err(error) => failure = Some(describe(&error)),
                }
            }
            if !addresses.is_empty() {
                return Ok(addresses);
            }
        }
        match failure {
            None => Err(ResolveError::NotFound),
            Some(failure) => Err(ResolveError::Failed(failure)),
        }
    }

    /// The answers of each family that is wanted.
    async fn ask(&self, name: Name, family: Family) -> [Option<Answer>; 2] {
        let lookup = |name, kind| self.resolver.lookup(name, kind);
        match family {
            Family::V4 => [None, Some(lookup(name, RecordType::A).await)],
            Family::V6 => [Some(lookup(name, RecordType::AAAA).await), None],
            Family::Any | Family::Both => {
                let v6 = lookup(name.clone(), RecordType::AAAA);
                both(v6, lookup(name, RecordType::A)).await.into()
            }
        }
    }

    /// The names to ask for, in the order of resolv.conf(5).
    fn candidates(&self, name: &Name) -> Vec<Name> {
        let mut absolute = name.clone();
        absolute.set_fqdn(true);
        if name.is_fqdn() {
            return vec![absolute];
        }
        let searched = self
            .search
            .iter()
            .filter_map(|suffix| name.clone().append_domain(suffix).ok());
        let dots = usize::from(name.num_labels()).saturating_sub(1);
        if dots >= self.ndots {
            std::iter::once(absolute).chain(searched).collect()
        } else {
            searched.chain(std::iter::once(absolute.clone())).collect()
        }
    }
}

type Answer = Result<Lookup, NetError>;

/// Both answers. Once one of them is addresses, the other may take
/// [`OTHER_FAMILY_WITHIN`] more.
async fn both(
    one: impl Future<Output = Answer>,
    other: impl Future<Output = Answer>,
) -> (Option<Answer>, Option<Answer>) {
    let (one, other) = (pin!(one), pin!(other));
    match select(one, other).await {
        Either::Left((first, other)) => {
            let second = within(first.is_ok(), other).await;
            (Some(first), second)
        }
        Either::Right((first, one)) => {
            let second = within(first.is_ok(), one).await;
            (second, Some(first))
        }
    }
}

async fn within(bounded: bool, answer: impl Future<Output = Answer>) -> Option<Answer> {
    if bounded {
        tokio::time::timeout(OTHER_FAMILY_WITHIN, answer).await.ok()
    } else {
        Some(answer.await)
    }
}

/// The name server said that there is no such name or no such record.
fn is_negative(error: &NetError) -> bool {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => matches!(
            none.response_code,
            ResponseCode::NXDomain | ResponseCode::NoError
        ),
        NetError::Dns(DnsError::ResponseCode(code)) => *code == ResponseCode::NXDomain,
        _ => false,
    }
}

/// Without the query's id and the like, so that the same failure reads the
/// same.
fn describe(error: &NetError) -> String {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => answered(none.response_code),
        NetError::Dns(DnsError::ResponseCode(code)) => answered(*code),
        NetError::Timeout => "no answer from the name server: i/o timeout".to_owned(),
        other => other.to_string(),
    }
}

fn answered(code: ResponseCode) -> String {
    match code {
        ResponseCode::ServFail => "server misbehaving: SERVFAIL".to_owned(),
        ResponseCode::Refused => "server misbehaving: REFUSED".to_owned(),
        other => format!("server misbehaving: {other}"),
    }
}
