//! `zones`: how requests are split between zones.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_threshold::{Status, Timestamp};
use evenkeel_zone_weights::Locality;
use serde_json::json;

use super::admin::Told;
use super::{ShowZonesArguments, VerifyZonesArguments, ZonesCommand, admin, output};
use crate::config::{ZoneSettings, duration};
use crate::delivery::{XdsReport, draw_proxies};
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::status::Style;
use crate::zones::envoy::{Proxy, ReadError, Seen, Verdict, draw_verdict, paths, verdict};
use crate::zones::{
    Endpoint, Instance, PairReport, RuleName, Weights, Zones, draw_comparison, draw_gates,
    draw_split, flow_picture, report,
};

pub(super) fn run(
    command: &ZonesCommand,
    admin: Option<&str>,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    match command {
        ZonesCommand::Show(arguments) => show(arguments, admin, json, environment),
        ZonesCommand::Verify(arguments) => verify(arguments, json),
        ZonesCommand::Proxies => proxies(admin, json, environment),
    }
}

fn proxies(admin: Option<&str>, json: bool, environment: &Environment) -> Result<Exit, Failure> {
    let told = admin::ask::<XdsReport>("/v1/xds", admin, environment)?;
    match json {
        true => output::print(&told.text)?,
        false => output::print(&draw_proxies(&told.value))?,
    }
    let refusing = told
        .value
        .subscribers
        .iter()
        .any(|proxy| !proxy.refused.is_empty());
    Ok(if refusing { Exit::NotSo } else { Exit::Ok })
}

fn verify(arguments: &VerifyZonesArguments, json: bool) -> Result<Exit, Failure> {
    let time = duration::parse(&arguments.duration)
        .map_err(|text| Failure::new(Exit::Usage, format!("--for: {text}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("no runtime: {error}")))?;
    let verdict = runtime.block_on(watch(arguments, time))?;
    match json {
        true => output::print_json(&json!(verdict))?,
        false => output::print(&draw_verdict(&verdict))?,
    }
    Ok(if verdict.is_good() {
        Exit::Ok
    } else {
        Exit::NotSo
    })
}

/// Reads an Envoy, waits, and reads it again.
async fn watch(arguments: &VerifyZonesArguments, time: Duration) -> Result<Verdict, Failure> {
    let fetch = |path| admin::fetch(&arguments.envoy, path);
    let unread = |error: ReadError| {
        let exit = match error {
            ReadError::NoCluster { .. } => Exit::Usage,
            ReadError::Json { .. } | ReadError::Hosts { .. } => Exit::Unavailable,
        };
        Failure::new(exit, format!("{}: {error}", arguments.envoy))
    };
    let info = fetch(paths::SERVER_INFO).await?;
    let config = fetch(paths::CONFIG_DUMP).await?;
    let runtime = fetch(paths::RUNTIME).await?;
    let proxy = Proxy::read(&arguments.cluster, &info, &config, &runtime).map_err(unread)?;
    let look = async || {
        let (clusters, stats) = (fetch(paths::CLUSTERS).await?, fetch(paths::STATS).await?);
        Seen::read(&proxy, &clusters, &stats).map_err(unread)
    };
    let before = look().await?;
    let began = tokio::time::Instant::now();
    tokio::time::sleep(time).await;
    let after = look().await?;
    Ok(verdict(
        &proxy,
        &before,
        &after,
        began.elapsed().as_secs_f64(),
    ))
}

fn show(
    arguments: &ShowZonesArguments,
    admin: Option<&str>,
    json: bool,
    environment: &Environment,
) -> Result<Exit, Failure> {
    let usage = |text: String| Failure::new(Exit::Usage, text);
    let rule = match &arguments.rule {
        Some(rule) => {
            let rule = rule
                .parse()
                .map_err(|text| usage(format!("--rule: {text}")))?;
            Some(rule)
        }
        None => None,
    };
    let told = |rule: Option<RuleName>| match (&arguments.endpoints, &arguments.upstream) {
        (Some(endpoints), _) => {
            let value = calculated(arguments, endpoints, rule).map_err(usage)?;
            let text = format!("{:#}\n", json!(value));
            Ok(Told { text, value })
        }
        (None, Some(upstream)) => {
            let path = path(upstream, arguments, rule);
            admin::ask::<PairReport>(&path, admin, environment)
        }
        (None, None) => Err(usage("UPSTREAM or --endpoints is needed".to_owned())),
    };
    let style = match std::io::stdout().is_terminal() {
        true => Style::Colour,
        false => Style::Plain,
    };
    if arguments.compare {
        let reports = RuleName::ALL
            .into_iter()
            .map(|rule| Ok(told(Some(rule))?.value))
            .collect::<Result<Vec<_>, Failure>>()?;
        match json {
            true => output::print_json(&json!({ "rules": reports }))?,
            false => output::print(&draw_comparison(&reports))?,
        }
        return Ok(Exit::Ok);
    }
    let report = told(rule)?;
    if let Some(path) = &arguments.svg {
        std::fs::write(path, flow_picture(&report.value)).map_err(|error| {
            Failure::new(Exit::CannotCreate, format!("{}: {error}", path.display()))
        })?;
    }
    if json {
        output::print(&report.text)?;
        return Ok(Exit::Ok);
    }
    let mut text = draw_split(&report.value, style);
    if arguments.explain {
        text.push_str(&draw_gates(&report.value));
    }
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn path(upstream: &str, arguments: &ShowZonesArguments, rule: Option<RuleName>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("callers", &arguments.callers);
    if let Some(zone) = &arguments.zone {
        query.append_pair("zone", zone);
    }
    if let Some(rule) = rule {
        query.append_pair("rule", rule.as_str());
    }
    let upstream =
        percent_encoding::utf8_percent_encode(upstream, percent_encoding::NON_ALPHANUMERIC);
    format!("/v1/zones/{upstream}?{}", query.finish())
}

/// The split for made-up services.
fn calculated(
    arguments: &ShowZonesArguments,
    endpoints: &str,
    rule: Option<RuleName>,
) -> Result<PairReport, String> {
    let settings = ZoneSettings {
        tolerance: arguments
            .tolerance
            .unwrap_or(ZoneSettings::default().tolerance),
        ..ZoneSettings::default()
    };
    let now = Timestamp::ZERO;
    let mut zones = Zones::new(settings.rules(), now);
    let rule = rule.unwrap_or(settings.rule);
    let (upstream, callers): (Arc<str>, Arc<str>) = ("endpoints".into(), "callers".into());
    let made =
        |text: &str, flag: &str| instances(text).map_err(|error| format!("--{flag}: {error}"));
    let called = made(endpoints, "endpoints")?;
    let calling = made(&arguments.callers, "callers")?;
    for (name, instances) in [(&upstream, called), (&callers, calling)] {
        zones.service(now, name).map_err(|full| full.to_string())?;
        zones.handle_instances(now, name, instances, Vec::new());
    }
    let pair = zones
        .pair(now, &upstream, &callers, rule)
        .map_err(|full| full.to_string())?;
    // Changes are gathered for a moment; here there is nothing to wait for.
    while let Some(due) = zones.poll_timeout() {
        zones.handle_timeout(due);
    }
    let pair = pair.borrow();
    Ok(report(&pair, arguments.zone.as_deref()))
}

/// More made-up hosts than these in one zone help nobody.
const MOST: u32 = 100_000;

/// `a=3,b=4+1`: hosts per zone, unhealthy ones after the plus.
fn instances(text: &str) -> Result<Vec<Instance>, String> {
    let mut instances = Vec::new();
    for entry in text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        let (zone, counts) = entry.split_once('=').ok_or_else(|| {
            format!("{entry:?} is not of the form zone=count or zone=count+unhealthy")
        })?;
        let (healthy, unhealthy) = counts.split_once('+').unwrap_or((counts, "0"));
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(number) if number <= MOST => Ok(number),
            Ok(_) => Err(format!("{entry:?}: more than {MOST} hosts")),
            Err(_) => Err(format!("{entry:?}: {text:?} is not a whole number")),
        };
        let locality = Locality::zone_only(zone.trim());
        let (healthy, unhealthy) = (number(healthy)?, number(unhealthy)?);
        for host in 0..healthy + unhealthy {
            let status = if host < healthy {
                Status::Passing
            } else {
                Status::Critical
            };
            let id = format!("{}/{}", zone.trim(), instances.len());
            instances.push(Instance {
                endpoint: Endpoint {
                    id: id.as_str().into(),
                    address: "made-up".into(),
                    port: 1,
                    locality: locality.clone(),
                    priority: 0,
                },
                weights: Weights::default(),
                checks: vec![(evenkeel_engine::CheckId::new("", "", &id, "", ""), status)],
            });
        }
    }
    Ok(instances)
}
