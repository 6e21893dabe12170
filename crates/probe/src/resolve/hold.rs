use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout};

use super::{Resolve, ResolveError};
use crate::definition::Family;

/// How long the name servers are waited for where there are addresses to go on
/// with. A name server that answers for one family only takes 500 ms with
/// [`SystemResolver`](super::SystemResolver).
const PATIENCE: Duration = Duration::from_secs(1);

/// The most names whose addresses are held; a further one is not, until some
/// are too old. With the longest names and most addresses, 60 MB.
const MOST_NAMES: usize = 65_536;

/// The most addresses of a name and family that are held: no probe tries more.
const MOST_ADDRESSES: usize = 16;

/// Goes on with a name's last good addresses while the resolver fails (P118).
///
/// Each lookup asks `inner`, and what that finds counts, also that there is no
/// such name. Only if it fails, or has not answered within one second, the
/// latest addresses are used that it found, if that is no longer ago than
/// `hold`.
///
/// A check whose timeout is a second or less is not helped against name servers
/// that do not answer.
pub struct HoldingResolver {
    inner: Arc<dyn Resolve>,
    hold: Duration,
    held: Mutex<Names>,
    helped: AtomicU64,
}

#[derive(Default)]
struct Names {
    /// By what was asked for: all addresses, those of IPv4, those of IPv6.
    by_name: [HashMap<Box<str>, Held>; 3],
    /// When what is too old was last thrown away.
    swept: Option<Instant>,
}

struct Held {
    addresses: Arc<[IpAddr]>,
    found: Instant,
}

impl HoldingResolver {
    /// Holds what `inner` finds for this long.
    pub fn new(inner: Arc<dyn Resolve>, hold: Duration) -> Self {
        Self {
            inner,
            hold,
            held: Mutex::default(),
            helped: AtomicU64::new(0),
        }
    }

    /// How many lookups had no answer and went on with addresses that were held.
    pub fn helped(&self) -> u64 {
        self.helped.load(Ordering::Relaxed)
    }

    async fn look_up(&self, name: &str, family: Family) -> Result<Vec<IpAddr>, ResolveError> {
        let held = self.names().fresh(name, family, self.hold);
        let asking = match family {
            Family::Any | Family::Both => self.inner.resolve(name),
            Family::V4 | Family::V6 => self.inner.resolve_family(name, family),
        };
        let Some(held) = held else {
            let answer = asking.await;
            if let Ok(addresses) = &answer {
                self.found(name, family, addresses);
            }
            return answer;
        };
        match timeout(PATIENCE, asking).await {
            Ok(Ok(addresses)) => {
                self.found(name, family, &addresses);
                Ok(addresses)
            }
            Ok(Err(ResolveError::NotFound)) => {
                self.found(name, family, &[]);
                Err(ResolveError::NotFound)
            }
            Ok(Err(ResolveError::Failed(_))) | Err(_) => {
                self.helped.fetch_add(1, Ordering::Relaxed);
                Ok(held.to_vec())
            }
        }
    }

    fn found(&self, name: &str, family: Family, addresses: &[IpAddr]) {
        let mut names = self.names();
        if addresses.is_empty() {
            names.of(family).remove(name);
        } else {
            names.keep(name, family, addresses, self.hold);
        }
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Resolve for HoldingResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        self.look_up(name, Family::Any).await
    }

    async fn resolve_family(
        &self,
        name: &str,
        family: Family,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        self.look_up(name, family).await
    }
}

impl Names {
    fn of(&mut self, family: Family) -> &mut HashMap<Box<str>, Held> {
        let [all, v4, v6] = &mut self.by_name;
        match family {
            Family::Any | Family::Both => all,
            Family::V4 => v4,
            Family::V6 => v6,
        }
    }

    fn fresh(&mut self, name: &str, family: Family, hold: Duration) -> Option<Arc<[IpAddr]>> {
        let held = self.of(family).get(name)?;
        (held.found.elapsed() <= hold).then(|| Arc::clone(&held.addresses))
    }

    fn keep(&mut self, name: &str, family: Family, addresses: &[IpAddr], hold: Duration) {
        let now = Instant::now();
        let held = Held {
            addresses: most_of_each_family(addresses),
            found: now,
        };
        if let Some(place) = self.of(family).get_mut(name) {
            *place = held;
            return;
        }
        if self.count() >= MOST_NAMES {
            // Looked for now and then, since it looks at all of them.
            let due = self.swept.is_none_or(|at| now - at > hold / 2);
            if due {
                self.swept = Some(now);
                for names in &mut self.by_name {
                    names.retain(|_, held| now - held.found <= hold);
                }
            }
            if self.count() >= MOST_NAMES {
                return;
            }
        }
        self.of(family).insert(name.into(), held);
    }

    fn count(&self) -> usize {
        self.by_name.iter().map(HashMap::len).sum()
    }
}

fn most_of_each_family(addresses: &[IpAddr]) -> Arc<[IpAddr]> {
    let mut left = [MOST_ADDRESSES; 2];
    addresses
        .iter()
        .filter(|ip| {
            let left = &mut left[usize::from(ip.is_ipv6())];
            let some = *left > 0;
            *left = left.saturating_sub(1);
            some
        })
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    /// Says what it is told to; `None` is to say nothing.
    #[derive(Default)]
    struct Script(Mutex<Option<Result<Vec<IpAddr>, ResolveError>>>);

    #[async_trait]
    impl Resolve for Script {
        async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, ResolveError> {
            let says = self.0.lock().expect("no panic").clone();
            match says {
                Some(says) => says,
                None => std::future::pending().await,
            }
        }
    }

    const HOLD: Duration = Duration::from_secs(60);

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn failed() -> ResolveError {
        ResolveError::Failed("server misbehaving: SERVFAIL".to_owned())
    }

    fn scripted() -> (Arc<Script>, HoldingResolver) {
        let script = Arc::new(Script::default());
        (Arc::clone(&script), HoldingResolver::new(script, HOLD))
    }

    impl Script {
        fn say(&self, says: Result<Vec<IpAddr>, ResolveError>) {
            *self.0.lock().expect("no panic") = Some(says);
        }

        fn fall_silent(&self) {
            *self.0.lock().expect("no panic") = None;
        }
    }

    // P118
    #[tokio::test(start_paused = true)]
    async fn a_failure_is_bridged_for_as_long_as_stated() {
        let (script, resolver) = scripted();
        script.say(Err(failed()));
        assert_eq!(
            resolver.resolve("a").await,
            Err(failed()),
            "nothing is held"
        );
        script.say(Ok(vec![address(1)]));
        assert_eq!(resolver.resolve("a").await, Ok(vec![address(1)]));
        script.say(Err(failed()));
        advance(HOLD).await;
        assert_eq!(resolver.resolve("a").await, Ok(vec![address(1)]));
        assert_eq!(resolver.resolve("b").await, Err(failed()), "another name");
        assert_eq!(resolver.helped(), 1);
        // Not from the time that it helped.
        advance(Duration::from_millis(1)).await;
        assert_eq!(resolver.resolve("a").await, Err(failed()));
        assert_eq!(resolver.helped(), 1);
    }

    // P119
    #[tokio::test(start_paused = true)]
    async fn what_the_resolver_says_counts() {
        let (script, resolver) = scripted();
        for says in [
            Ok(vec![address(1)]),
            Ok(vec![address(2)]),
            Err(ResolveError::NotFound),
            Err(failed()),
            Ok(vec![address(1)]),
            Ok(vec![]),
            Err(failed()),
        ] {
            script.say(says.clone());
            assert_eq!(resolver.resolve("a").await, says);
        }
        assert_eq!(resolver.helped(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_waited_out_for_a_second_where_there_is_something_to_go_on_with() {
        let (script, resolver) = scripted();
        let asking = timeout(Duration::from_secs(30), resolver.resolve("a"));
        assert!(asking.await.is_err(), "nothing is held");
        script.say(Ok(vec![address(1)]));
        assert!(resolver.resolve("a").await.is_ok());
        script.fall_silent();
        let before = Instant::now();
        assert_eq!(resolver.resolve("a").await, Ok(vec![address(1)]));
        assert_eq!(before.elapsed(), PATIENCE);
        assert_eq!(resolver.helped(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_of_all_addresses_is_none_of_one_family() {
        let (script, resolver) = scripted();
        script.say(Ok(vec![address(1), IpAddr::V6(1.into())]));
        assert!(resolver.resolve("a").await.is_ok());
        assert!(resolver.resolve_family("a", Family::V4).await.is_ok());
        script.say(Err(failed()));
        let both = Ok(vec![address(1), IpAddr::V6(1.into())]);
        assert_eq!(resolver.resolve("a").await, both);
        let v4 = resolver.resolve_family("a", Family::V4).await;
        assert_eq!(v4, Ok(vec![address(1)]));
        assert_eq!(
            resolver.resolve_family("a", Family::V6).await,
            Err(failed())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn names_and_addresses_without_end_take_bounded_room() {
        let (script, resolver) = scripted();
        let many = |v6: bool| {
            (0..1000_u16).map(move |host| match v6 {
                true => IpAddr::V6(u128::from(host).into()),
                false => IpAddr::V4(u32::from(host).into()),
            })
        };
        script.say(Ok(many(true).chain(many(false)).collect()));
        assert_eq!(resolver.resolve("a").await.expect("found").len(), 2000);
        script.say(Err(failed()));
        let held = resolver.resolve("a").await.expect("held");
        let v6 = held.iter().filter(|ip| ip.is_ipv6()).count();
        assert_eq!((v6, held.len()), (MOST_ADDRESSES, 2 * MOST_ADDRESSES));

        script.say(Ok(vec![address(1)]));
        for number in 0..MOST_NAMES {
            let found = resolver.resolve(&format!("{number}")).await;
            assert_eq!(found, Ok(vec![address(1)]));
        }
        assert_eq!(resolver.names().count(), MOST_NAMES);
        // Those that were there first are still held, and go when they are old.
        script.say(Err(failed()));
        assert!(resolver.resolve("0").await.is_ok());
        let last = (MOST_NAMES - 1).to_string();
        assert_eq!(resolver.resolve(&last).await, Err(failed()));
        advance(HOLD * 2).await;
        script.say(Ok(vec![address(1)]));
        assert!(resolver.resolve("new").await.is_ok());
        assert_eq!(resolver.names().count(), 1);
    }
}
