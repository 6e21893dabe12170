//! The fields of a definition, one by one.

use evenkeel_consul::types::CheckDefinition;

/// Fields that any kind of check honours.
pub(super) const ANY_KIND: [&str; 7] = [
    "Interval",
    "Timeout",
    "DeregisterCriticalServiceAfter",
    "OutputMaxSize",
    "SuccessBeforePassing",
    "FailuresBeforeWarning",
    "FailuresBeforeCritical",
];

/// The names of the fields that are set.
pub(super) fn given(definition: &CheckDefinition) -> impl Iterator<Item = &'static str> {
    all(definition)
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
}

/// Every field, and whether it is set. Taken apart as a whole, so that a new field
/// cannot be forgotten here.
pub(super) fn all(definition: &CheckDefinition) -> [(&'static str, bool); 28] {
    let CheckDefinition {
        http,
        header,
        method,
        body,
        disable_redirects,
        tls_server_name,
        tls_skip_verify,
        tcp,
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
        interval,
        timeout,
        deregister_critical_service_after,
        output_max_size,
        success_before_passing,
        failures_before_warning,
        failures_before_critical,
        extra: _,
    } = definition;
    let text = |text: &String| !text.is_empty();
    [
        ("HTTP", text(http)),
        ("Header", !header.is_empty()),
        ("Method", text(method)),
        ("Body", text(body)),
        ("DisableRedirects", *disable_redirects),
        ("TLSServerName", text(tls_server_name)),
        ("TLSSkipVerify", *tls_skip_verify),
        ("TCP", text(tcp)),
        ("TCPUseTLS", *tcp_use_tls),
        ("UDP", text(udp)),
        ("GRPC", text(grpc)),
        ("GRPCUseTLS", *grpc_use_tls),
        ("H2PING", text(h2ping)),
        ("H2PingUseTLS", h2ping_use_tls.is_some()),
        ("DockerContainerID", text(docker_container_id)),
        ("Shell", text(shell)),
        ("ScriptArgs", !script_args.is_empty()),
        ("AliasNode", text(alias_node)),
        ("AliasService", text(alias_service)),
        ("OSService", text(os_service)),
        ("TTL", !ttl.is_zero()),
        ("Interval", !interval.is_zero()),
        ("Timeout", !timeout.is_zero()),
        (
            "DeregisterCriticalServiceAfter",
            !deregister_critical_service_after.is_zero(),
        ),
        ("OutputMaxSize", *output_max_size != 0),
        ("SuccessBeforePassing", success_before_passing.is_some()),
        ("FailuresBeforeWarning", failures_before_warning.is_some()),
        ("FailuresBeforeCritical", failures_before_critical.is_some()),
    ]
}
