//! What a running Envoy does about zones, read from its admin interface and
//! explained: is routing by zone on for a cluster, if not what closes it and what
//! would open it, and do requests go where the rule says.

mod draw;
mod proxy;
mod verdict;

pub use draw::draw_verdict;
pub use proxy::{Proxy, ReadError, Seen};
pub use verdict::{Verdict, ZoneVerdict, verdict};

/// What is asked of the admin interface: the configuration once, the rest before
/// and after the time in which requests are watched.
pub mod paths {
    /// Name, version and locality of the proxy.
    pub const SERVER_INFO: &str = "/server_info";
    /// Bootstrap and clusters.
    pub const CONFIG_DUMP: &str = "/config_dump";
    /// Runtime keys that win over the configuration.
    pub const RUNTIME: &str = "/runtime";
    /// Hosts with their health, and how many requests each got.
    pub const CLUSTERS: &str = "/clusters?format=json";
    /// The counters of all clusters that concern zones.
    pub const STATS: &str = "/stats?format=json&filter=%5Ecluster%5C..*%5C.(lb_.*zone.*%7Clb_healthy_panic%7Clb_local_cluster_not_ok%7Cupstream_cx_none_healthy)$";
}
