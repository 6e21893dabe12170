//! What the user typed, not yet what it means.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use evenkeel_replay::TruthWindow;

use crate::config::Inputs;

/// Health status that can be trusted: watches services, probes them, damps
/// their results and writes the status back to Consul.
#[derive(Debug, Clone, Parser)]
#[command(name = "evenkeel", version, disable_help_subcommand = true)]
pub struct Arguments {
    /// Admin address of the daemon to talk to: unix:/path/to/socket or
    /// host:port. Without it, the default sockets are tried.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub admin: Option<String>,

    /// Print JSON instead of text for people; `run` logs JSON.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Run the daemon. `evenkeel --config-file X` alone means this, too.
    Run(RunArguments),
    /// Watch a few made-up targets for a while: what raw results would have
    /// reported, and what is reported instead.
    Demo(DemoArguments),
    /// Show each check of a running daemon: its status, what is pending, and
    /// its thresholds.
    Status(StatusArguments),
    /// Show how requests are split between zones.
    Zones(ZonesArguments),
    /// Probe one target once: the verdict, and how long each phase took. Exit
    /// code 0 passing, 1 warning, 2 critical, 3 could not be probed.
    Probe(ProbeArguments),
    /// Replay a recorded history: what each strategy would have reported, how
    /// often it would have been wrong, and how late.
    Simulate(SimulateArguments),
    /// Check, show or explain the configuration.
    Config(ConfigArguments),
}

/// Where the configuration comes from. Later ones win: defaults, CONSUL_*
/// variables, files, EVENKEEL_* variables, flags.
#[derive(Debug, Clone, Default, Args)]
pub struct LayerArguments {
    /// Read this file (TOML, or JSON when its name ends in .json). May be
    /// repeated; later ones win. EVENKEEL_CONFIG_FILE names one, too.
    #[arg(long = "config-file", value_name = "FILE")]
    pub config_file: Vec<PathBuf>,

    /// Read all .toml and .json files of this directory, by name. May be
    /// repeated.
    #[arg(long = "config-dir", value_name = "DIR")]
    pub config_dir: Vec<PathBuf>,

    /// Set any key, e.g. `--set consul.datacenter=dc2`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Watch this Consul: a URL or host:port. Sets consul.address and catalog.
    #[arg(long, value_name = "ADDR", conflicts_with = "file")]
    pub consul: Option<String>,

    /// Watch the checks in this file. Sets file.path and catalog.
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,

    /// Failures beyond the first that make a check critical. Sets
    /// threshold.critical_threshold.
    #[arg(long, value_name = "N")]
    pub critical_threshold: Option<u32>,

    /// Successes beyond the first that make a check passing again. Sets
    /// threshold.passing_threshold.
    #[arg(long, value_name = "N")]
    pub passing_threshold: Option<u32>,

    /// Keep what survives a restart here. Sets state_dir.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// text or json. Sets log.format.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// error, warn, info, debug or trace. Sets log.level.
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

impl LayerArguments {
    /// As the configuration takes them: short forms are settings like others.
    pub fn inputs(&self) -> Inputs {
        let mut flags: Vec<(String, String, String)> = Vec::new();
        for set in &self.set {
            let (key, text) = set.split_once('=').unwrap_or((set, ""));
            flags.push((key.to_owned(), text.to_owned(), format!("--set {key}")));
        }
        let mut short = |flag: &str, key: &str, text: Option<String>| {
            if let Some(text) = text {
                flags.push((key.to_owned(), text, flag.to_owned()));
            }
        };
        let path = |path: &Option<PathBuf>| Some(path.as_ref()?.to_string_lossy().into_owned());
        let count = |count: Option<u32>| Some(count?.to_string());
        let of = |catalog: &str, given: bool| given.then(|| catalog.to_owned());
        short("--consul", "consul.address", self.consul.clone());
        short("--consul", "catalog", of("consul", self.consul.is_some()));
        short("--file", "file.path", path(&self.file));
        short("--file", "catalog", of("file", self.file.is_some()));
        short(
            "--critical-threshold",
            "threshold.critical_threshold",
            count(self.critical_threshold),
        );
        short(
            "--passing-threshold",
            "threshold.passing_threshold",
            count(self.passing_threshold),
        );
        short("--state-dir", "state_dir", path(&self.state_dir));
        short("--log-format", "log.format", self.log_format.clone());
        short("--log-level", "log.level", self.log_level.clone());
        Inputs {
            files: self.config_file.clone(),
            directories: self.config_dir.clone(),
            flags,
        }
    }
}

/// Arguments of `run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArguments {
    /// Where the configuration comes from.
    #[command(flatten)]
    pub layers: LayerArguments,
}

/// Arguments of `demo`.
#[derive(Debug, Clone, Default, Args)]
pub struct DemoArguments {
    /// End after so many seconds. Without it, at Ctrl-C.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    pub seconds: Option<u32>,

    /// End after this long, e.g. 1m30s.
    #[arg(long, alias = "for", value_name = "DURATION")]
    pub duration: Option<String>,
}

/// Arguments of `status`.
#[derive(Debug, Clone, Default, Args)]
pub struct StatusArguments {
    /// Only checks on this node.
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,

    /// Only checks of the service with this id.
    #[arg(long, value_name = "ID")]
    pub service: Option<String>,

    /// Only checks with this id.
    #[arg(long, value_name = "ID")]
    pub check: Option<String>,

    /// Only checks with this reported status: passing, warning or critical.
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
}

/// Arguments of `simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateArguments {
    /// The history: CSV (time,check,status), JSON lines or evenkeel's event log,
    /// plain or gzip; several files are one history. `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A strategy to compare, e.g. raw, consecutive:down=3,up=3 or
    /// window:m=3,n=5,l=1. May be repeated. Without it, a usual set.
    #[arg(long, value_name = "NAME[:KEY=VALUE,...]")]
    pub strategy: Vec<String>,

    /// Results that show what the truth is: a result and those after it, of which
    /// four fifths have to agree on a change.
    #[arg(long, value_name = "N", default_value_t = TruthWindow::default().results())]
    pub truth: usize,

    /// A silence longer than this is a gap and counts for nothing; auto is ten
    /// intervals of the check, never takes every silence as it is.
    #[arg(long, value_name = "auto|never|DURATION", default_value = "auto")]
    pub gap: String,

    /// What becomes of rows that cannot be read or are out of order.
    #[arg(long, value_enum, default_value = "skip")]
    pub bad_rows: BadRowsRule,

    /// Name at most so many bad rows; all are counted.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub show_bad_rows: usize,

    /// How often a check in an event log is taken to have been probed.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub event_interval: String,

    /// Write pictures into this directory: a timeline of each of the checks with
    /// the most changes, and delay against writes.
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,

    /// Timelines of so many checks.
    #[arg(long, value_name = "N", default_value_t = 12, requires = "svg")]
    pub timelines: usize,

    /// Measure how results fail while the targets work, propose strategies, and
    /// replay them, too.
    #[arg(long)]
    pub advise: bool,

    /// The mean time wanted between two false alarms of one check.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "720h",
        requires = "advise"
    )]
    pub between_false_alarms: String,

    /// What a probe of a target that does not answer takes.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        requires = "advise"
    )]
    pub timeout: String,
}

/// What becomes of rows that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BadRowsRule {
    /// They are named, counted and left out.
    Skip,
    /// They are named and counted, and nothing is replayed.
    Refuse,
}

/// Arguments of `probe`.
#[derive(Debug, Clone, Default, Args)]
pub struct ProbeArguments {
    /// An http or https URL, or KIND:TARGET, e.g. tcp://db.example:5432. Not with
    /// --check.
    pub target: Option<String>,

    /// Keys of a check as in a file of checks: timeout=2s, method=HEAD,
    /// tls.server_name=a.example. Lists as in JSON.
    #[arg(value_name = "KEY=VALUE", requires = "target")]
    pub keys: Vec<String>,

    /// Run the check of this name or id in the file of --file.
    #[arg(long, value_name = "NAME")]
    pub check: Option<String>,

    /// Where the configuration comes from; its probe settings count.
    #[command(flatten)]
    pub layers: LayerArguments,
}

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArguments {
    /// Which of them.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What to do with the configuration.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Read it as `run` would and name every fault. Exit code 0 or 78.
    Check(LayerArguments),
    /// Print every value in effect, and where it comes from. Secrets are masked.
    Show(LayerArguments),
    /// Print a complete configuration file, with all defaults, explained.
    Example,
    /// Print the JSON Schema of configuration files.
    Schema {
        /// The schema of the file catalog instead.
        #[arg(long)]
        checks: bool,
    },
}

/// Arguments of `zones`.
#[derive(Debug, Clone, Args)]
pub struct ZonesArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ZonesCommand,
}

/// What to do about zones.
#[derive(Debug, Clone, Subcommand)]
pub enum ZonesCommand {
    /// Show how the requests of one service to another are split, from a running
    /// daemon, or from numbers:
    /// `zones show --endpoints a=2,b=4 --callers a=3,b=1`.
    Show(ShowZonesArguments),
    /// Look whether a running Envoy routes by zone: if not, what keeps it from it;
    /// if so, whether requests go where the rule says. Ends with 1 if not.
    Verify(VerifyZonesArguments),
    /// Show which proxies a running daemon serves over xDS, what each has accepted,
    /// and what was refused and why. Ends with 1 if one refuses what it was sent.
    Proxies,
}

/// Arguments of `zones verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyZonesArguments {
    /// The called cluster, as Envoy calls it.
    #[arg(value_name = "CLUSTER")]
    pub cluster: String,

    /// Envoy's admin address: host:port or unix:/path/to/socket.
    #[arg(long, value_name = "ADDRESS")]
    pub envoy: String,

    /// Watch requests for so long.
    #[arg(long = "for", value_name = "DURATION", default_value = "10s")]
    pub duration: String,
}

/// Arguments of `zones show`.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowZonesArguments {
    /// The called service, of which a running daemon is asked.
    #[arg(value_name = "UPSTREAM", required_unless_present = "endpoints")]
    pub upstream: Option<String>,

    /// The calling service; with --endpoints, its healthy hosts per zone:
    /// a=3,b=1.
    #[arg(long, value_name = "SERVICE|COUNTS")]
    pub callers: String,

    /// Calculate from numbers instead: healthy endpoints per zone, unhealthy ones
    /// after a plus sign: a=2,b=4+1.
    #[arg(long, value_name = "COUNTS", conflicts_with = "upstream")]
    pub endpoints: Option<String>,

    /// Only for callers in this zone.
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,

    /// service-connect, envoy, bounded, joint or round-robin. Without it, the
    /// daemon's.
    #[arg(long, value_name = "RULE", conflicts_with = "compare")]
    pub rule: Option<String>,

    /// How far above the mean bounded and joint may load an endpoint, in percent;
    /// with --endpoints.
    #[arg(long, value_name = "PERCENT", requires = "endpoints")]
    pub tolerance: Option<u32>,

    /// Compare all rules.
    #[arg(long)]
    pub compare: bool,

    /// Show every condition of Envoy's rule, and what would open a closed one.
    #[arg(long)]
    pub explain: bool,

    /// Write a picture of the flows to this file, too.
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub svg: Option<PathBuf>,
}
