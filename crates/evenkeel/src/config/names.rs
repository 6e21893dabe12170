//! Names: other spellings of keys, and what users of consul-esm look for.

use crate::document::Shape;
use crate::thresholds::Key;

/// Top-level keys that stand for another one. consul-esm has them there, and
/// they mean here what its documentation says.
pub(super) const ALIASES: [(&str, &str); 3] = [
    ("critical_threshold", "threshold.critical_threshold"),
    ("passing_threshold", "threshold.passing_threshold"),
    ("ping_type", "probe.icmp"),
];

/// Values of such keys that stand for another one: "udp" has made people open
/// ports for UDP, of which there is none (P057).
const WORDS: [(&str, &str, &str); 2] = [
    ("ping_type", "udp", "datagram"),
    ("ping_type", "socket", "raw"),
];

/// What a value of a key is called under the key that it stands for.
pub(super) fn meant<'a>(alias: &str, word: &'a str) -> &'a str {
    WORDS
        .iter()
        .find_map(|(key, theirs, ours)| (*key == alias && *theirs == word).then_some(*ours))
        .unwrap_or(word)
}

/// Top-level keys of consul-esm that are none here, and what is said of each.
/// `docs/from-consul-esm.md` has a row for every one.
pub const CONSUL_ESM: [(&str, &str); 35] = [
    ("http_addr", "did you mean consul.address?"),
    ("token", "did you mean consul.token?"),
    ("datacenter", "did you mean consul.datacenter?"),
    ("partition", "did you mean consul.partition?"),
    ("ca_file", "did you mean consul.ca_file?"),
    ("ca_path", "did you mean consul.ca_path?"),
    ("cert_file", "did you mean consul.cert_file?"),
    ("key_file", "did you mean consul.key_file?"),
    ("tls_server_name", "did you mean consul.tls_server_name?"),
    (
        "external_node_meta",
        "did you mean consul.external_node_meta?",
    ),
    ("stale_read_nodes", "did you mean consul.stale?"),
    ("https_ca_file", "did you mean probe.https_ca_file?"),
    ("https_ca_path", "did you mean probe.https_ca_path?"),
    ("https_cert_file", "did you mean probe.https_cert_file?"),
    ("https_key_file", "did you mean probe.https_key_file?"),
    ("log_level", "did you mean log.level?"),
    ("log_json", "did you mean log.format = \"json\"?"),
    ("log_file", LOG),
    ("log_rotate_bytes", LOG),
    ("log_rotate_max_files", LOG),
    ("log_rotate_duration", LOG),
    ("enable_syslog", LOG),
    ("syslog_facility", LOG),
    ("client_address", "did you mean admin.listen?"),
    (
        "telemetry",
        "metrics are always served, at /metrics of admin.listen",
    ),
    (
        "enable_debug",
        "there is none; see /metrics of admin.listen",
    ),
    ("batch_flush_interval", "did you mean write.batch_gap?"),
    (
        "enable_agentless",
        "not needed: a server or an agent does as consul.address",
    ),
    ("instance_id", ALONE),
    ("consul_service", ALONE),
    ("consul_service_tag", ALONE),
    ("consul_kv_path", ALONE),
    ("node_reconnect_timeout", PING),
    ("node_probe_interval", PING),
    (
        "disable_coordinate_updates",
        "not needed: coordinates are not updated",
    ),
];

/// Ways of writing that suggest themselves.
const NEAR: [(&str, &str); 6] = [
    ("address", "did you mean consul.address?"),
    ("level", "did you mean log.level?"),
    ("format", "did you mean log.format?"),
    ("listen", "did you mean admin.listen?"),
    ("thresholds", "did you mean threshold?"),
    ("overrides", "did you mean override?"),
];

const LOG: &str = "the log goes to standard error, for journald or a container to keep";
const ALONE: &str = "not needed: instances do not share work yet";
const PING: &str = "nodes are not pinged yet";

/// What to say of a top-level key that is no setting of ours.
pub(super) fn hint(key: &str) -> Option<String> {
    CONSUL_ESM
        .iter()
        .chain(&NEAR)
        .find_map(|(name, hint)| (*name == key).then(|| (*hint).to_owned()))
        .or_else(|| {
            let meant = Key::all().find(|known| known.field() == key)?;
            Some(format!("did you mean threshold.{}?", meant.field()))
        })
}

/// All keys with a value, as dotted paths; a map, a list and a list of tables
/// are one value.
pub(super) fn keys(shape: &Shape) -> Vec<String> {
    fn walk(shape: &Shape, path: &str, keys: &mut Vec<String>) {
        let Shape::Table(fields) = shape else {
            keys.push(path.to_owned());
            return;
        };
        for field in fields {
            let path = match path {
                "" => field.name.clone(),
                _ => format!("{path}.{}", field.name),
            };
            walk(&field.shape, &path, keys);
        }
    }
    let mut keys = Vec::new();
    walk(shape, "", &mut keys);
    keys
}
