use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::types::{CheckDefinition, HealthCheck};

/// The fields of a definition that `/v1/txn` stores on Consul 1.8.7; any other
/// field it drops without a word.
pub const TRANSACTION_FIELDS: [&str; 9] = [
    "HTTP",
    "TLSSkipVerify",
    "Header",
    "Method",
    "Body",
    "TCP",
    "Interval",
    "Timeout",
    "DeregisterCriticalServiceAfter",
];

/// How the status of a check can be written without changing the rest of it.
///
/// Small, since one is kept for every check: 16 bytes, and for the transaction
/// the record's own fields as JSON text (150 bytes for a plain HTTP check),
/// shared between clones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WriteForm {
    /// By a transaction that sends these fields of the record.
    Transaction(Extras),
    /// By read, register and read-back.
    Register,
}

/// The fields of a record that a transaction sends besides its names, Status,
/// Output and index: JSON members without the braces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Extras(Arc<str>);

impl WriteForm {
    /// The form for a check, as a list has delivered it.
    ///
    /// ```
    /// use evenkeel_consul::types::HealthCheck;
    /// use evenkeel_consul::write::WriteForm;
    ///
    /// let mut check = HealthCheck::default();
    /// check.definition.http = "http://127.0.0.1:8080/health".into();
    /// assert!(matches!(WriteForm::of(&check), WriteForm::Transaction(_)));
    /// // A transaction would lose the limit of the output.
    /// check.definition.output_max_size = 100;
    /// assert_eq!(WriteForm::of(&check), WriteForm::Register);
    /// ```
    pub fn of(check: &HealthCheck) -> Self {
        // The record of another cluster cannot be written at all; the
        // register path finds that out and says so.
        // What could not be read is lost unless the whole record is sent.
        if !survives_transaction(&check.definition)
            || !check.peer_name.is_empty()
            || !check.faults.is_empty()
        {
            return Self::Register;
        }
        let mut text = String::new();
        member(&mut text, "Name", &check.name);
        if !check.notes.is_empty() {
            member(&mut text, "Notes", &check.notes);
        }
        // Lost on 1.8.7 whatever is sent; a server that would keep it gets it.
        if !check.kind.is_empty() {
            member(&mut text, "Type", &check.kind);
        }
        for (key, value) in &check.extra {
            if !is_unset(value) {
                member(&mut text, key, value);
            }
        }
        if check.definition.extra.is_empty() {
            member(&mut text, "Definition", &check.definition);
        } else {
            // What is unknown and survives is unset.
            let mut definition = check.definition.clone();
            definition.extra.clear();
            member(&mut text, "Definition", &definition);
        }
        Self::Transaction(Extras(text.into()))
    }

    /// Bytes on the heap, for accounts of memory.
    pub fn heap_bytes(&self) -> usize {
        match self {
            // Two counters in front of a shared text.
            Self::Transaction(extras) => extras.0.len() + 16,
            Self::Register => 0,
        }
    }
}

impl Extras {
    /// The members as JSON text, without those in `refused` (names that the
    /// server has called unknown).
    pub(super) fn members(&self, refused: &BTreeSet<String>) -> Cow<'_, str> {
        if !refused.iter().any(|name| self.0.contains(name.as_str())) {
            return Cow::Borrowed(&self.0);
        }
        let mut text = String::with_capacity(self.0.len());
        for (key, value) in &self.fields() {
            if !refused.contains(key) {
                member(&mut text, key, value);
            }
        }
        Cow::Owned(text)
    }

    /// The members as a map.
    pub(super) fn fields(&self) -> Map<String, Value> {
        // Written by `of` above, so it is an object.
        serde_json::from_str(&format!("{{{}}}", self.0)).unwrap_or_default()
    }

    /// Whether the definition sets one of `fields`.
    pub(crate) fn defines_any(&self, fields: &BTreeSet<String>) -> bool {
        // The cheap look first: the set is empty on every server known today.
        !fields.is_empty()
            && self
                .fields()
                .get("Definition")
                .and_then(Value::as_object)
                .is_some_and(|definition| definition.keys().any(|key| fields.contains(key)))
    }
}

pub(super) fn member(text: &mut String, key: &str, value: &(impl Serialize + ?Sized)) {
    if !text.is_empty() && !text.ends_with('{') {
        text.push(',');
    }
    // Strings, numbers and maps of them: nothing in it can fail to be written.
    text.push_str(&serde_json::to_string(key).unwrap_or_default());
    text.push(':');
    text.push_str(&serde_json::to_string(value).unwrap_or_default());
}

/// Whether nothing is set but [`TRANSACTION_FIELDS`].
fn survives_transaction(definition: &CheckDefinition) -> bool {
    // Every field by name: a new one must not be forgotten here.
    let CheckDefinition {
        http: _,
        tls_skip_verify: _,
        header: _,
        method: _,
        body: _,
        tcp: _,
        interval: _,
        timeout: _,
        deregister_critical_service_after: _,
        disable_redirects,
        tls_server_name,
        tcp_use_tls,
        udp,
        grpc,
        grpc_use_tls,
        h2ping,
        h2ping_use_tls,
        docker_container_id,
        shell,
        script_args,
        alias_node,
        alias_service,
        os_service,
        ttl,
        output_max_size,
        success_before_passing,
        failures_before_warning,
        failures_before_critical,
        extra,
    } = definition;
    let texts = [
        tls_server_name,
        udp,
        grpc,
        h2ping,
        docker_container_id,
        shell,
        alias_node,
        alias_service,
        os_service,
    ];
    texts.iter().all(|text| text.is_empty())
        && !(*disable_redirects || *tcp_use_tls || *grpc_use_tls)
        && h2ping_use_tls.is_none()
        && script_args.is_empty()
        && ttl.is_zero()
        && *output_max_size == 0
        && [
            success_before_passing,
            failures_before_warning,
            failures_before_critical,
        ]
        .iter()
        .all(|threshold| threshold.is_none())
        && extra.values().all(is_unset)
}

/// Whether a value means the same as a missing field to Go's decoder.
pub(super) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_unset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Record;
    use proptest::prelude::*;
    use serde_json::json;

    fn form(definition: &Value) -> WriteForm {
        let check = json!({"Node": "n", "CheckID": "c", "Name": "x", "Definition": definition});
        WriteForm::of(&serde_json::from_value(check).unwrap())
    }

    #[test]
    fn only_what_survives_goes_by_transaction() {
        let all = json!({
            "HTTP": "http://h/", "TLSSkipVerify": true, "Header": {"A": ["b"]}, "Method": "PUT",
            "Body": "b", "TCP": "h:1", "Interval": "10s", "Timeout": 1_000_000_000_u64,
            "DeregisterCriticalServiceAfter": "90m"
        });
        assert!(matches!(form(&all), WriteForm::Transaction(_)));
        assert!(matches!(form(&Value::Null), WriteForm::Transaction(_)));
        // What a server says of every check, without meaning.
        let unset = json!({"HTTP": "h", "New": "", "Newer": 0, "Newest": null, "List": [],
                           "TLSServerName": "", "OutputMaxSize": 0});
        assert!(matches!(form(&unset), WriteForm::Transaction(_)));
        // Each of these is dropped by /v1/txn on 1.8.7: docs/consul.md, "How it is written".
        for lost in [
            json!({"OutputMaxSize": 1}),
            json!({"ScriptArgs": ["a"]}),
            json!({"DockerContainerID": "d"}),
            json!({"Shell": "s"}),
            json!({"GRPC": "h:1"}),
            json!({"GRPCUseTLS": true}),
            json!({"AliasNode": "n"}),
            json!({"AliasService": "s"}),
            json!({"TTL": 5_000_000_000_u64}),
            json!({"TLSServerName": "n"}),
            json!({"H2PingUseTLS": false}),
            json!({"FailuresBeforeCritical": 3}),
            json!({"FromTheFuture": 1}),
        ] {
            assert_eq!(form(&lost), WriteForm::Register, "{lost}");
        }
    }

    #[test]
    fn a_form_is_small() {
        // One is kept per check. Limit: 400 bytes for a plain HTTP check.
        let check = json!({
            "Node": "node-0123", "CheckID": "service:web-0123", "Name": "Service 'web' check",
            "Status": "critical", "Output": "x".repeat(4096), "ServiceID": "web-0123",
            "ServiceName": "web", "ServiceTags": ["a", "b"], "Type": "http",
            "Definition": {"HTTP": "http://10.20.30.40:8080/health/ready", "Interval": "10s",
                           "Timeout": "1m0s", "DeregisterCriticalServiceAfter": "1h30m0s"},
        });
        let form = WriteForm::of(&serde_json::from_value(check).unwrap());
        let size = std::mem::size_of_val(&form) + form.heap_bytes();
        assert!(size <= 256, "{size}");
        assert_eq!(std::mem::size_of::<WriteForm>(), 16);
    }

    #[test]
    fn refused_fields_are_left_out() {
        let check = json!({"Name": "x", "ExposedPort": 8080, "Definition": {"TCP": "h:1"}});
        let form = WriteForm::of(&serde_json::from_value(check).unwrap());
        let WriteForm::Transaction(extras) = form else {
            panic!("{form:?}")
        };
        let sent = |refused: &BTreeSet<String>| -> Value {
            serde_json::from_str(&format!("{{{}}}", extras.members(refused))).unwrap()
        };
        assert_eq!(
            sent(&BTreeSet::new()),
            json!({"Name": "x", "ExposedPort": 8080, "Definition": {"TCP": "h:1"}})
        );
        let refused = BTreeSet::from(["ExposedPort".to_owned()]);
        assert_eq!(
            sent(&refused),
            json!({"Name": "x", "Definition": {"TCP": "h:1"}})
        );
        assert!(extras.defines_any(&BTreeSet::from(["TCP".to_owned()])));
        assert!(!extras.defines_any(&refused));
    }

    /// A field of a definition, set or not, of one of the kinds there are.
    fn field() -> impl Strategy<Value = (String, Value)> {
        let name = prop_oneof![
            4 => prop::sample::select(TRANSACTION_FIELDS.as_slice()).prop_map(str::to_owned),
            1 => prop::sample::select(
                ["GRPC", "TTL", "OutputMaxSize", "ScriptArgs", "H2PingUseTLS", "New", "TLSServerName"]
                    .as_slice()
            )
            .prop_map(str::to_owned),
        ];
        (name, "[a-z0-9\"\\\\ äß☃\n]{0,8}", 0_u32..3, any::<bool>()).prop_map(
            |(name, text, number, null)| {
                let value = match name.as_str() {
                    _ if null && number == 0 && name != "H2PingUseTLS" => Value::Null,
                    "TLSSkipVerify" | "H2PingUseTLS" => json!(number == 1),
                    "Interval" | "DeregisterCriticalServiceAfter" => json!(format!("{number}m")),
                    "Timeout" | "TTL" => json!(u64::from(number) * 1_000_000_000),
                    "OutputMaxSize" => json!(number),
                    "ScriptArgs" => json!(vec![text; number as usize]),
                    "Header" if number == 0 => json!({}),
                    "Header" => json!({text.clone(): vec![text; number as usize]}),
                    "New" => {
                        json!([Value::Null, json!(number), json!({"a": text})][number as usize])
                    }
                    _ => json!(text),
                };
                (name, value)
            },
        )
    }

    proptest! {
        #[test]
        fn what_goes_by_transaction_loses_nothing(
            definition in prop::collection::vec(field(), 0..6),
            name in "[a-z\" ]{0,8}",
            notes in "[a-z=ä\n\\[\\]]{0,8}",
        ) {
            let definition: Map<String, Value> = definition.into_iter().collect();
            let original = json!({
                "Node": "n", "CheckID": "c", "Name": name, "Notes": notes, "ServiceTags": null,
                "Definition": definition.clone()
            });
            let check: HealthCheck = serde_json::from_value(original.clone()).unwrap();
            let others_set = definition.iter().any(|(key, value)| {
                !TRANSACTION_FIELDS.contains(&key.as_str())
                    && (!is_unset(value) || (key == "H2PingUseTLS" && !value.is_null()))
            });
            match WriteForm::of(&check) {
                WriteForm::Register => prop_assert!(others_set),
                WriteForm::Transaction(extras) => {
                    prop_assert!(!others_set);
                    let mut sent = extras.fields();
                    // These are sent by other means.
                    sent.insert("CheckID".into(), "c".into());
                    let original = Record(original.as_object().unwrap().clone());
                    prop_assert_eq!(original.losses_to(&Record(sent.clone())), vec![]);
                    prop_assert_eq!(Record(sent).losses_to(&original), vec![]);
                }
            }
        }
    }
}
