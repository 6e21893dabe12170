//! Picks endpoints for requests.

mod endpoints;
mod hosts;
mod picker;
mod table;
mod wheel;

pub use endpoints::{EndpointId, Endpoints};
pub use picker::{Choice, Picker, Rotation};
