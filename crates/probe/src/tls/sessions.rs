//! Sessions that are resumed.
//!
//! A resumed handshake shows no certificate: what was verified when the session
//! began is taken as verified. Here that holds only for as long as verifying
//! the same certificates with the same trust would have the same result, and
//! not for long:
//!
//! * The sessions belong to a configuration, which is made anew when a file that
//!   it was made from changes.
//! * Once the first certificate of the chain has ended, or the clock has been set
//!   back, the session is not offered. Between, there is nothing in a
//!   certificate that time could change.
//! * After [`FULL_AFTER`] there is a full handshake in any case, so that a
//!   certificate that the server has replaced is seen, however often the server
//!   renews its tickets.
//! * A session goes to the address that it came from, under the same name.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::{
    ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::{ClientConfig, NamedGroup};
use rustls_pki_types::{ServerName, UnixTime};

/// How long after a full handshake there is another one, in seconds.
const FULL_AFTER: u64 = 10 * 60;

/// The most targets of one configuration of which a session is kept. One takes
/// about 10 KB with a usual chain; a ticket and a chain cannot be longer than
/// 64 KiB each.
const MAX_TARGETS: usize = 16 * 1024;

/// The sessions of one configuration.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<Target, Arc<Resumable>>>);

type Target = (ServerName<'static>, Option<SocketAddr>);

/// One target, from one full handshake on to the next that is due.
#[derive(Debug)]
pub(super) struct Resumable {
    /// The configuration that the sessions belong to, with a place for them.
    pub(super) config: Arc<ClientConfig>,
    verified: Mutex<Option<Verified>>,
}

/// When the certificates were verified, and until when it holds, in seconds.
#[derive(Debug, Clone, Copy)]
struct Verified {
    at: u64,
    until: u64,
}

impl Sessions {
    /// The place for sessions with a target. One of which the time is up is
    /// replaced; connections that are still open keep the old one, so that what
    /// comes in on them does not get into the new one.
    pub(super) fn of(
        &self,
        name: &ServerName<'static>,
        address: Option<SocketAddr>,
        config: &ClientConfig,
        now: UnixTime,
    ) -> Arc<Resumable> {
        let mut targets = lock(&self.0);
        let target = (name.clone(), address);
        if let Some(known) = targets.get(&target).filter(|known| known.holds(now)) {
            return known.clone();
        }
        if targets.len() >= MAX_TARGETS {
            targets.retain(|_, known| known.holds(now));
        }
        if targets.len() >= MAX_TARGETS {
            targets.clear();
        }
        let mut config = config.clone();
        config.resumption = Resumption::store(Arc::new(Place::default()));
        let new = Arc::new(Resumable {
            config: Arc::new(config),
            verified: Mutex::default(),
        });
        targets.insert(target, new.clone());
        new
    }
}

impl Resumable {
    /// Certificates that end at `first_end` have been verified.
    pub(super) fn verified(&self, now: UnixTime, first_end: u64) {
        let mut verified = lock(&self.verified);
        let before = *verified;
        *verified = Some(Verified {
            at: before.map_or(now.as_secs(), |before| before.at),
            until: before.map_or(first_end, |before| before.until.min(first_end)),
        });
    }

    fn holds(&self, now: UnixTime) -> bool {
        let now = now.as_secs();
        // Without any there is nothing to be resumed yet.
        lock(&self.verified).is_none_or(|verified| {
            let age = now.checked_sub(verified.at);
            age.is_some_and(|age| age < FULL_AFTER) && now <= verified.until
        })
    }
}

/// Where the library puts what it needs for the next handshake. There is one
/// for each target, so that the name does not matter.
#[derive(Debug, Default)]
struct Place(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// The latest; servers send two at once.
    tls13: Option<Tls13ClientSessionValue>,
}

impl ClientSessionStore for Place {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        lock(&self.0).group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        lock(&self.0).group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        lock(&self.0).tls12 = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        lock(&self.0).tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        lock(&self.0).tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        lock(&self.0).tls13 = Some(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        lock(&self.0).tls13.take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::crypto::ring;

    use super::*;
    use crate::tls::verify::AnyCertificate;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    /// However many targets there are in the course of time.
    #[test]
    fn no_more_targets_are_kept_than_there_are_places() {
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(AnyCertificate::new(&provider));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let sessions = Sessions::default();
        let name = ServerName::try_from("a.test").unwrap();
        let target = |number: usize| {
            let [.., high, low] = number.to_be_bytes();
            Some(SocketAddr::from(([127, 0, high, low], 443)))
        };
        let lasting = sessions.of(&name, target(0), &config, at(0));
        lasting.verified(at(500), u64::MAX);
        for number in 1..MAX_TARGETS {
            let passing = sessions.of(&name, target(number), &config, at(1));
            passing.verified(at(1), 100);
        }
        assert_eq!(lock(&sessions.0).len(), MAX_TARGETS);
        // What does not hold goes first, and only then the rest.
        sessions.of(&name, target(MAX_TARGETS), &config, at(600));
        assert_eq!(lock(&sessions.0).len(), 2);
        assert!(Arc::ptr_eq(
            &lasting,
            &sessions.of(&name, target(0), &config, at(600))
        ));
        for number in MAX_TARGETS..3 * MAX_TARGETS {
            sessions.of(&name, target(number), &config, at(600));
            assert!(lock(&sessions.0).len() <= MAX_TARGETS);
        }
    }
}
