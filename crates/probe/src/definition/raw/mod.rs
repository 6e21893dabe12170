//! The form of a definition in a file or an API, before it is validated.

mod http;
mod tcp;
mod tls;

use serde::{Deserialize, Serialize};

use super::{Definition, DefinitionError};

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RawDefinition {
    Http(Box<http::RawHttp>),
    Tcp(Box<tcp::RawTcp>),
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
            RawDefinition::Faulty(raw) => Ok(Self::Faulty(raw.fault.into())),
        }
    }
}

impl From<Definition> for RawDefinition {
    fn from(definition: Definition) -> Self {
        match definition {
            Definition::Http(check) => Self::Http(Box::new((&check).into())),
            Definition::Tcp(check) => Self::Tcp(Box::new((&check).into())),
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
