//! The form of a definition in a file or an API, before it is validated.

mod dns;
#[cfg(feature = "docker")]
mod docker;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "h2ping")]
mod h2ping;
mod handshake;
mod http;
#[cfg(feature = "icmp")]
mod icmp;
#[cfg(all(feature = "script", unix))]
mod script;
mod tcp;
mod tls;
mod udp;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConnectOptions, Definition, DefinitionError};

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RawDefinition {
    Http(Box<http::RawHttp>),
    Tcp(Box<tcp::RawTcp>),
    Tls(Box<handshake::RawTlsCheck>),
    Udp(Box<udp::RawUdp>),
    Dns(Box<dns::RawDns>),
    #[cfg(feature = "icmp")]
    Icmp(Box<icmp::RawIcmp>),
    #[cfg(feature = "grpc")]
    Grpc(Box<grpc::RawGrpc>),
    #[cfg(feature = "h2ping")]
    #[serde(rename = "h2ping")]
    H2Ping(Box<h2ping::RawH2Ping>),
    #[cfg(feature = "docker")]
    Docker(Box<docker::RawDocker>),
    #[cfg(all(feature = "script", unix))]
    Script(Box<script::RawScript>),
    Faulty(RawFaulty),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFaulty {
    fault: String,
}

impl TryFrom<RawDefinition> for Definition {
    type Error = DefinitionError;

    fn try_from(raw: RawDefinition) -> Result<Self, DefinitionError> {
        match raw {
            RawDefinition::Http(raw) => raw.check().map(Self::Http),
            RawDefinition::Tcp(raw) => raw.check().map(Self::Tcp),
            RawDefinition::Tls(raw) => raw.check().map(Self::Tls),
            RawDefinition::Udp(raw) => raw.check().map(Self::Udp),
            RawDefinition::Dns(raw) => raw.check().map(Self::Dns),
            #[cfg(feature = "icmp")]
            RawDefinition::Icmp(raw) => raw.check().map(Self::Icmp),
            #[cfg(feature = "grpc")]
            RawDefinition::Grpc(raw) => raw.check().map(Self::Grpc),
            #[cfg(feature = "h2ping")]
            RawDefinition::H2Ping(raw) => raw.check().map(Self::H2Ping),
            #[cfg(feature = "docker")]
            RawDefinition::Docker(raw) => raw.check().map(Self::Docker),
            #[cfg(all(feature = "script", unix))]
            RawDefinition::Script(raw) => raw.check().map(Self::Script),
            RawDefinition::Faulty(raw) => Ok(Self::Faulty(raw.fault.into())),
        }
    }
}

impl From<Definition> for RawDefinition {
    fn from(definition: Definition) -> Self {
        match definition {
            Definition::Http(check) => Self::Http(Box::new((&check).into())),
            Definition::Tcp(check) => Self::Tcp(Box::new((&check).into())),
            Definition::Tls(check) => Self::Tls(Box::new((&check).into())),
            Definition::Udp(check) => Self::Udp(Box::new((&check).into())),
            Definition::Dns(check) => Self::Dns(Box::new((&check).into())),
            #[cfg(feature = "icmp")]
            Definition::Icmp(check) => Self::Icmp(Box::new((&check).into())),
            #[cfg(feature = "grpc")]
            Definition::Grpc(check) => Self::Grpc(Box::new((&check).into())),
            #[cfg(feature = "h2ping")]
            Definition::H2Ping(check) => Self::H2Ping(Box::new((&check).into())),
            #[cfg(feature = "docker")]
            Definition::Docker(check) => Self::Docker(Box::new((&check).into())),
            #[cfg(all(feature = "script", unix))]
            Definition::Script(check) => Self::Script(Box::new((&check).into())),
            Definition::Faulty(fault) => Self::Faulty(RawFaulty {
                fault: fault.into(),
            }),
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_yes(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_no(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_unset(options: &ConnectOptions) -> bool {
    *options == ConnectOptions::NONE
}

/// A duration that may be left out.
pub(super) mod optional_duration {
    use super::{Deserialize, Duration};

    #[derive(Deserialize)]
    struct Text(#[serde(with = "crate::duration")] Duration);

    pub(crate) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => crate::duration::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Text>::deserialize(deserializer)?.map(|Text(duration)| duration))
    }
}
