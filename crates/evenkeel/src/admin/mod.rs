//! The admin server: what the daemon says of itself over HTTP.
//!
//! * `GET /live`: 200 while the daemon's loop turns, 503 when it is stuck.
//! * `GET /ready`: 200 while it can do its work, 503 with the reasons if not.
//! * `GET /metrics`: for Prometheus.
//! * `GET /v1/status`: every check; `?node=`, `?service=`, `?check=`,
//!   `?status=` choose some.
//! * `GET /v1/zones/UPSTREAM?callers=SERVICE`: how requests should be split between
//!   zones; `&zone=`, `&rule=` choose. With `&index=` it waits for another version,
//!   with `Accept: text/event-stream` it sends each.
//! * `GET /v1/xds`: which proxies are served, what each has accepted, and what it
//!   refused and why.
//! * `GET /stats`: Envoy's counters of zone-aware routing, as Envoy shows them.
//!
//! * `PUT /v1/heartbeat/CHECK?status=passing`: somebody reports how a check is; the
//!   body is the text.
//!
//! All but the last only read; what changes something is taken over a unix socket
//! or with the token. Every connection is for one request, and their number, their
//! headers and their time are bounded.

mod answer;
mod handle;
mod heartbeat;
mod listener;
mod server;
mod stay;
mod zones;

pub use handle::{AdminHandle, Question, StatusPage};
pub use heartbeat::{CheckPath, HeartbeatReport, ReportRefused};
pub use listener::{BindError, Bound, SocketAccess, bind};
pub use server::serve;
use stay::Stay;
