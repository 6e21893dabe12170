//! What the types alone cannot say: values that do not go together.

use std::net::IpAddr;
use std::time::Duration;

use super::{CatalogKind, Listen, Settings};
use crate::thresholds::{self, Source};

/// Pairs of a key and a sentence.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) faults: Vec<(String, String)>,
    pub(super) warnings: Vec<(String, String)>,
}

impl Found {
    fn fault(&mut self, key: &str, text: impl Into<String>) {
        self.faults.push((key.to_owned(), text.into()));
    }

    fn warn(&mut self, key: &str, text: impl Into<String>) {
        self.warnings.push((key.to_owned(), text.into()));
    }

    /// `least <= duration <= most`
    fn within(&mut self, key: &str, duration: Duration, least: Duration, most: Duration) {
        let text = super::duration::format;
        if duration < least {
            self.fault(
                key,
                format!("{} is less than {}", text(duration), text(least)),
            );
        } else if duration > most {
            self.fault(
                key,
                format!("{} is more than {}", text(duration), text(most)),
            );
        }
    }

    /// Neither key without the other.
    fn together<T, U>(&mut self, one: (&str, &Option<T>), other: (&str, &Option<U>)) {
        match (one.1, other.1) {
            (Some(_), None) => self.fault(one.0, format!("needs {}", other.0)),
            (None, Some(_)) => self.fault(other.0, format!("needs {}", one.0)),
            _ => {}
        }
    }

    fn not_empty(&mut self, key: &str, text: Option<&str>) {
        if text.is_some_and(|text| text.trim().is_empty()) {
            self.fault(key, "must not be empty");
        }
    }
}

/// Checks the settings as a whole.
pub(super) fn check(settings: &Settings) -> Found {
    let mut found = Found::default();
    consul(settings, &mut found);
    rules(settings, &mut found);
    times(settings, &mut found);
    admin(settings, &mut found);

    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref()
            .map(|path| path.to_string_lossy().into_owned())
    };
    found.not_empty("state_dir", path(&settings.state_dir).as_deref());
    found.not_empty("events.path", path(&settings.events.path).as_deref());
    found.not_empty("file.path", path(&settings.file.path).as_deref());
    if settings.catalog == Some(CatalogKind::File) && settings.file.path.is_none() {
        found.fault("file.path", "missing, and catalog is \"file\"");
    }
    if let (Some(warning), Some(critical)) = (
        settings.probe.certificate_warning_days,
        settings.probe.certificate_critical_days,
    ) && critical > warning
    {
        found.fault(
            "probe.certificate_critical_days",
            "is above certificate_warning_days, so that a warning would never come",
        );
    }
    if settings.events.rotate_size.0 < 4096 {
        found.fault(
            "events.rotate_size",
            "less than 4KiB, which is a few events",
        );
    }
    found.together(
        ("probe.https_cert_file", &settings.probe.https_cert_file),
        ("probe.https_key_file", &settings.probe.https_key_file),
    );
    if settings.probe.user_agent.chars().any(char::is_control) {
        found.fault("probe.user_agent", "has a control character");
    }
    found.together(
        ("xds.cert_file", &settings.xds.cert_file),
        ("xds.key_file", &settings.xds.key_file),
    );
    if settings.xds.client_ca_file.is_some() && settings.xds.cert_file.is_none() {
        let text = "needs xds.cert_file and xds.key_file: without TLS no proxy shows a certificate";
        found.fault("xds.client_ca_file", text);
    }
    if settings.xds.files.is_some() && settings.xds.services.is_empty() {
        let text = "missing: the services that xds.files is for";
        found.fault("xds.services", text);
    }
    if settings.zones.zone_keys.is_empty() {
        let text = "must not be empty: no instance would have a zone";
        found.fault("zones.zone_keys", text);
    }
    if let Err(text) = crate::logging::filter(&settings.log.level) {
        found.fault("log.level", text);
    }
    found
}

fn consul(settings: &Settings, found: &mut Found) {
    let consul = &settings.consul;
    if consul.address.contains('@') {
        // The address is not repeated: there may be a password in it.
        let text = "has a user or password, which belong into consul.http_auth";
        found.fault("consul.address", text);
    } else if let Err(error) = consul.address.parse::<evenkeel_consul::config::Address>() {
        found.fault("consul.address", error.to_string());
    }
    if consul.external_node_meta.is_empty() {
        let text = "must not be empty: every node of the catalog would count as external";
        found.fault("consul.external_node_meta", text);
    }
    if consul
        .http_auth
        .as_ref()
        .is_some_and(|auth| !auth.expose().contains(':'))
    {
        found.fault("consul.http_auth", "not of the form user:password");
    }
    found.together(
        ("consul.cert_file", &consul.cert_file),
        ("consul.key_file", &consul.key_file),
    );
    found.not_empty("consul.datacenter", consul.datacenter.as_deref());
    found.not_empty("consul.namespace", consul.namespace.as_deref());
    found.not_empty("consul.partition", consul.partition.as_deref());
    found.not_empty("consul.tls_server_name", consul.tls_server_name.as_deref());
    let (second, ten_minutes) = (Duration::from_secs(1), Duration::from_secs(600));
    // Consul cuts a longer wait to ten minutes.
    found.within("consul.wait", consul.wait, second, ten_minutes);
    found.within(
        "consul.request_timeout",
        consul.request_timeout,
        second,
        ten_minutes,
    );
}

fn rules(settings: &Settings, found: &mut Found) {
    for (key, text) in thresholds::faults(&settings.threshold, Source::Daemon) {
        found.fault(&format!("threshold.{key}"), text);
    }
    for (index, entry) in settings.overrides.iter().enumerate() {
        let here = format!("override[{index}]");
        if entry.node.is_none() && entry.service.is_none() && entry.check.is_none() {
            let text = "has none of node, service and check; for all checks write node = \"*\"";
            found.fault(&here, text);
        }
        if entry.thresholds.is_empty() {
            found.fault(&here, "sets nothing");
        }
        for (key, text) in thresholds::faults(&entry.thresholds, Source::Override(index)) {
            found.fault(&format!("{here}.{key}"), text);
        }
    }
}

fn times(settings: &Settings, found: &mut Found) {
    let millis = Duration::from_millis;
    let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
    let schedule = &settings.schedule;
    found.within(
        "schedule.minimum_interval",
        schedule.minimum_interval,
        millis(10),
        day,
    );
    found.within(
        "schedule.default_interval",
        schedule.default_interval,
        schedule.minimum_interval.min(day),
        day,
    );
    let timeout = settings.probe.default_timeout;
    found.within(
        "probe.default_timeout",
        timeout,
        millis(1),
        Duration::from_secs(3600),
    );
    found.within(
        "probe.hold_addresses",
        settings.probe.hold_addresses,
        Duration::ZERO,
        day,
    );
    // P113
    if timeout > schedule.default_interval {
        let text = format!(
            "{} is longer than schedule.default_interval ({}): a hanging target is probed less often",
            super::duration::format(timeout),
            super::duration::format(schedule.default_interval)
        );
        found.warn("probe.default_timeout", text);
    }
    let write = &settings.write;
    found.within(
        "write.output_period",
        write.output_period,
        millis(1000),
        day,
    );
    found.within("write.batch_gap", write.batch_gap, Duration::ZERO, minute);
    found.within(
        "file.poll_interval",
        settings.file.poll_interval,
        millis(10),
        day,
    );
    let run = &settings.run;
    found.within(
        "run.shutdown_grace",
        run.shutdown_grace,
        Duration::ZERO,
        10 * minute,
    );
    // The promise is a snapshot that is at most 10 s old.
    found.within(
        "run.snapshot_period",
        run.snapshot_period,
        millis(100),
        millis(10_000),
    );
}

fn admin(settings: &Settings, found: &mut Found) {
    let admin = &settings.admin;
    let has_token = admin.token.is_some() || admin.token_file.is_some();
    for listen in &admin.listen {
        if let Listen::Tcp(address) = listen
            && !is_loopback(address.ip())
            && !has_token
        {
            let text = format!(
                "{address} is not loopback: set admin.token or admin.token_file, without which \
                 anybody who reaches it could change state"
            );
            found.fault("admin.listen", text);
        }
    }
    if admin
        .token
        .as_ref()
        .is_some_and(|token| token.expose().trim().is_empty())
    {
        found.fault("admin.token", "must not be empty");
    }
    found.not_empty("admin.group", admin.group.as_deref());
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address
                    .to_ipv4_mapped()
                    .is_some_and(|address| address.is_loopback())
        }
    }
}
