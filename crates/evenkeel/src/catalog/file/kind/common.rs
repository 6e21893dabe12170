//! What stands beside a kind's own keys, and how it is set on a check.

use std::time::Duration;

use evenkeel_probe::{
    ConnectOptions, Definition, DefinitionError, GrpcCheck, H2PingCheck, TcpCheck, TlsCheck,
    TlsOptions,
};

use super::connect::Connect;
use super::tls::Tls;

/// The keys that several kinds have.
pub(in super::super) struct Common<'a> {
    /// How long the probe may take.
    pub(super) timeout: Duration,
    pub(super) tls: Option<&'a Tls>,
    pub(super) connect: Option<&'a Connect>,
}

impl Common<'_> {
    pub(super) fn connect(&self) -> Result<ConnectOptions, DefinitionError> {
        match self.connect {
            Some(connect) => connect.options(),
            None => Ok(ConnectOptions::default()),
        }
    }

    /// `check`, whose own keys are set, with the common ones.
    pub(super) fn complete<C: Secured>(&self, check: C) -> Result<Definition, DefinitionError> {
        let check = check.timed(self.timeout).connected(self.connect()?)?;
        Ok(match self.tls {
            None => check.into(),
            Some(tls) => check.secured(tls.into())?.into(),
        })
    }

    /// All that is wrong with the check whose own key is `key`, each with the key
    /// that it stands at.
    pub(super) fn faults<C: Secured>(
        &self,
        key: &str,
        check: Result<C, DefinitionError>,
    ) -> Vec<(String, String)> {
        let found = match check {
            Err(error) => vec![(key, Some(error))],
            Ok(check) => {
                let connected = self
                    .connect()
                    .and_then(|options| check.clone().connected(options));
                let secured = self.tls.map(|tls| check.secured(tls.into()));
                vec![
                    ("connect", connected.err()),
                    ("tls", secured.and_then(Result::err)),
                ]
            }
        };
        let named = |(key, error): (&str, Option<DefinitionError>)| {
            error.map(|error| (key.to_owned(), error.to_string()))
        };
        found.into_iter().filter_map(named).collect()
    }
}

/// A check that connects, with TLS or without.
pub(super) trait Secured: Clone + Into<Definition> {
    fn timed(self, timeout: Duration) -> Self;
    fn connected(self, options: ConnectOptions) -> Result<Self, DefinitionError>;
    fn secured(self, options: TlsOptions) -> Result<Self, DefinitionError>;
}

macro_rules! secured {
    ($($check:ty),*) => { $(
        impl Secured for $check {
            fn timed(self, timeout: Duration) -> Self {
                self.with_timeout(timeout)
            }

            fn connected(self, options: ConnectOptions) -> Result<Self, DefinitionError> {
                self.with_connect(options)
            }

            fn secured(self, options: TlsOptions) -> Result<Self, DefinitionError> {
                self.with_tls(options)
            }
        }
    )* };
}

secured!(TcpCheck, TlsCheck, GrpcCheck, H2PingCheck);
