//! Endpoints from a file, handed on as files: no Consul, no gRPC.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel::config::{CatalogKind, Settings};
use evenkeel::delivery::Mode;
use evenkeel::zones::{PairReport, RuleName};
use evenkeel_testkit::{Caller, Envoy, Origin, eventually};
use serde_json::Value;

use super::{
    Counts, NONE, REQUESTS, ZONES, agrees, ask, bootstrap, has, predicted, replaced, weighted,
};
use crate::daemon::TestDaemon;
use crate::zones::Admin;

const CALLERS: [u64; 3] = [4, 1, 1];

/// A file of endpoints, and a daemon's settings for it.
pub(super) struct Listed {
    pub(super) dir: tempfile::TempDir,
    origins: BTreeMap<&'static str, Vec<Origin>>,
}

impl Listed {
    pub(super) fn new() -> Self {
        let origins = ZONES.iter().zip(11..).map(|(zone, host)| {
            let origins = (0..6).map(|_| Origin::start(zone, host)).collect();
            (*zone, origins)
        });
        Self {
            dir: tempfile::tempdir().unwrap(),
            origins: origins.collect(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("endpoints.toml")
    }

    /// Replaces the file: so many endpoints in each zone, and `more` as it is.
    pub(super) fn write(&self, all: Counts, more: &str) {
        let mut text = more.to_owned();
        let mut endpoint = |service: &str, address: &str, zone: &str| {
            let _ = write!(
                text,
                "[[endpoint]]\nservice = {service:?}\naddress = {address:?}\nzone = {zone:?}\nregion = \"r\"\n"
            );
        };
        for (index, zone) in ZONES.iter().enumerate() {
            for origin in &self.origins[zone][..all[index]] {
                endpoint("web", &origin.address().to_string(), zone);
            }
            for number in 1..=CALLERS[index] {
                endpoint("shop", &format!("127.0.1.{}:{number}", 11 + index), zone);
            }
        }
        let new = self.dir.path().join(".new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    pub(super) fn settings(&self) -> Settings {
        let mut settings = Settings {
            catalog: Some(CatalogKind::File),
            ..Settings::default()
        };
        settings.file.path = Some(self.path());
        settings.file.poll_interval = Duration::from_millis(100);
        settings.admin.listen = vec![
            format!("unix:{}", self.dir.path().join("admin.sock").display())
                .parse()
                .unwrap(),
        ];
        settings.state_dir = Some(self.dir.path().join("state"));
        settings
    }
}

/// The documented bootstrap with files instead of gRPC: of the callers, and of the
/// called service.
fn from_files(directory: &Path, shop: &str, web: &str) -> String {
    let text = bootstrap(1);
    let (head, rest) = text.split_once("dynamic_resources:").unwrap();
    let (_, rest) = rest.split_once("static_resources:").unwrap();
    let text = format!("{head}static_resources:{rest}");
    let source = |name: &str| {
        let directory = directory.display();
        format!(
            "eds_cluster_config: {{eds_config: {{resource_api_version: V3, path_config_source: \
             {{path: {directory}/{name}, watched_directory: {{path: {directory}}}}}}}}}"
        )
    };
    let ads =
        "eds_cluster_config: &evenkeel\n        eds_config: {resource_api_version: V3, ads: {}}";
    let text = replaced(&text, ads, &source(shop));
    replaced(&text, "eds_cluster_config: *evenkeel", &source(web))
}

fn report(path: &Path) -> Option<PairReport> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

#[test]
fn envoy_follows_the_files_that_the_daemon_writes() {
    let listed = Listed::new();
    listed.write([3, 3, 3], "");
    let below = listed.dir.path().join("eds");
    let mut settings = listed.settings();
    settings.xds.files = Some(below.clone());
    settings.xds.services = vec!["web".to_owned(), "shop".to_owned()];
    settings.xds.callers = vec!["shop".to_owned()];
    let _daemon = TestDaemon::start(settings);
    for name in ["web.eds.json", "shop.eds.json", "web.from-shop.json"] {
        eventually(name, || below.join(name).exists().then_some(()));
    }
    let test = "envoy_follows_the_files";
    let bootstrap = from_files(&below, "shop.eds.json", "web.eds.json");
    let Some(envoy) = Envoy::start(test, &bootstrap, 2) else {
        return;
    };
    has(&envoy, "shop", 6, 6);
    let mut caller = Caller::connect(&envoy.listener("out"));
    for all in [[3, 3, 3], [6, 3, 3], [2, 2, 1]] {
        listed.write(all, "");
        let total = all.iter().sum::<usize>() as u64;
        has(&envoy, "web", total, total);
        let predicted = predicted(RuleName::Envoy, &[CALLERS], all, NONE);
        agrees(&ask(&mut caller, REQUESTS), &predicted);
        // Beside it, the same that the daemon answers.
        eventually("the plain file", || {
            let told = Admin::of(listed.dir.path()).report("web", "shop", "r/a/");
            let read = report(&below.join("web.from-shop.json"))?;
            let zone = read.zones.iter().find(|zone| zone.zone.zone == "a")?;
            (read.version == told.version && *zone == told.zones[0]).then_some(())
        });
    }
    assert_eq!(envoy.stat("cluster.web.update_rejected"), 0);
}

#[test]
fn in_weights_mode_there_is_a_file_for_the_callers_in_each_zone() {
    let listed = Listed::new();
    listed.write([2, 1, 1], "");
    let below = listed.dir.path().join("eds");
    let mut settings = listed.settings();
    settings.zones.rule = RuleName::Bounded;
    settings.xds.mode = Mode::Weights;
    settings.xds.files = Some(below.clone());
    settings.xds.services = vec!["web".to_owned(), "shop".to_owned()];
    settings.xds.callers = vec!["shop".to_owned()];
    let _daemon = TestDaemon::start(settings);
    let name = "web.from-shop.r.a.eds.json";
    eventually("its file", || below.join(name).exists().then_some(()));
    let text = weighted(&from_files(&below, "shop.eds.json", name));
    let Some(envoy) = Envoy::start("in_weights_mode_there_is_a_file", &text, 2) else {
        return;
    };
    let predicted = predicted(RuleName::Bounded, &[CALLERS], [2, 1, 1], NONE);
    has(&envoy, "web", 4, 4);
    let mut caller = Caller::connect(&envoy.listener("out"));
    agrees(&ask(&mut caller, REQUESTS), &predicted);
}

#[test]
fn whoever_reads_a_file_reads_a_whole_one() {
    let listed = Listed::new();
    listed.write([3, 3, 3], "");
    let below = listed.dir.path().join("eds");
    let mut settings = listed.settings();
    settings.file.poll_interval = Duration::from_millis(10);
    settings.xds.files = Some(below.clone());
    settings.xds.services = vec!["web".to_owned()];
    settings.xds.callers = vec!["shop".to_owned()];
    let _daemon = TestDaemon::start(settings);
    let (eds, plain) = (below.join("web.eds.json"), below.join("web.from-shop.json"));
    eventually("the files", || {
        (eds.exists() && plain.exists()).then_some(())
    });
    let mut versions = std::collections::BTreeSet::new();
    let mut sizes = [[6, 6, 6], [1, 1, 1]].into_iter().cycle();
    eventually("five versions", || {
        listed.write(sizes.next().unwrap(), "");
        for _ in 0..2_000 {
            let text = fs::read_to_string(&eds).unwrap();
            let read: Value = serde_json::from_str(&text).expect("a whole file");
            versions.insert(read["version_info"].to_string());
            let text = fs::read_to_string(&plain).unwrap();
            serde_json::from_str::<PairReport>(&text).expect("a whole file");
        }
        (versions.len() > 4).then_some(())
    });
    let left: Vec<_> = fs::read_dir(&below)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| !name.to_string_lossy().ends_with(".json"))
        .collect();
    assert!(left.len() <= 1, "at most the one being written: {left:?}");
}
