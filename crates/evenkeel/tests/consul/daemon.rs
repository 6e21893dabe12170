//! The daemon, in this process, on a thread and a runtime of its own.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use evenkeel::admin::{AdminHandle, CheckPath, HeartbeatReport};
use evenkeel::config::{CatalogKind, Settings};
use evenkeel::daemon::Daemon;
use evenkeel::environment::Environment;
use evenkeel::exit::{Exit, Failure};
use evenkeel::shutdown::Request;
use evenkeel::status::{CheckStatus, Readiness, StatusFilter, StatusReport};
use evenkeel_threshold::Status;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

/// A running daemon. Dropped, it is gone at once, as by `kill -9`: nothing is
/// flushed and nothing saved.
pub(crate) struct TestDaemon {
    admin: AdminHandle,
    requests: mpsc::Sender<Request>,
    kill: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    asking: Runtime,
}

/// Settings for a Consul at `address`, with an admin socket below `dir`.
pub(crate) fn settings(address: &str, dir: &Path) -> Settings {
    let mut settings = Settings {
        catalog: Some(CatalogKind::Consul),
        ..Settings::default()
    };
    settings.consul.address = address.to_owned();
    settings.admin.listen = vec![
        format!("unix:{}", dir.join("admin.sock").display())
            .parse()
            .unwrap(),
    ];
    settings.state_dir = Some(dir.join("state"));
    settings
}

impl TestDaemon {
    pub(crate) fn start(settings: Settings) -> Self {
        let (requests, asked) = mpsc::channel(4);
        let (kill, killed) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let daemon = Daemon::start(settings, &Environment::default())
                    .await
                    .unwrap();
                tell.send(daemon.admin()).unwrap();
                let refuse = Box::new(|| Err(Failure::new(Exit::Config, "no file in tests")));
                tokio::select! {
                    () = daemon.run(asked, refuse) => {}
                    _ = killed => {}
                }
            });
            runtime.shutdown_background();
        });
        Self {
            admin: told.recv().unwrap(),
            requests,
            kill: Some(kill),
            thread: Some(thread),
            asking: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    /// Reports how a check is; whether that was taken.
    pub(crate) fn heartbeat(&self, check: &str, node: &str, status: Status) -> bool {
        let report = HeartbeatReport {
            path: CheckPath {
                check: check.to_owned(),
                node: Some(node.to_owned()),
                ..CheckPath::default()
            },
            status,
            output: "done".to_owned(),
        };
        self.asking.block_on(self.admin.report(report)) == Some(Ok(()))
    }

    pub(crate) fn report(&self) -> StatusReport {
        self.asking
            .block_on(self.admin.status(StatusFilter::default()))
            .unwrap()
    }

    pub(crate) fn check(&self, node: &str, check: &str) -> Option<CheckStatus> {
        let filter = StatusFilter {
            node: Some(node.to_owned()),
            check: Some(check.to_owned()),
            ..StatusFilter::default()
        };
        self.asking
            .block_on(self.admin.status(filter))
            .unwrap()
            .checks
            .pop()
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.admin.readiness()
    }

    /// The value of a series, by its text up to the value.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.asking.block_on(self.admin.metrics());
        text.lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
            .unwrap_or_else(|| panic!("no {series} in\n{text}"))
    }

    /// Stops it in order and waits for its end.
    pub(crate) fn stop(mut self) {
        self.requests.blocking_send(Request::Shutdown).unwrap();
        let thread = self.thread.take().unwrap();
        evenkeel_testkit::wait_for(Duration::from_secs(30), || {
            thread.is_finished().then_some(())
        })
        .expect("it ends within its grace");
        thread.join().unwrap();
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if let Some(kill) = self.kill.take() {
            let _ = kill.send(());
        }
        if let Some(thread) = self.thread.take() {
            let joined = thread.join();
            if !std::thread::panicking() {
                joined.unwrap();
            }
        }
    }
}
