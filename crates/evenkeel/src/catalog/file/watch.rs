use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::settle::{Look, Quiet, Settling};
use super::{FileFault, Parsed, parse, services, view};
use crate::catalog::{CatalogFault, CatalogMessage, CatalogSender, CatalogView};
use crate::config::{FileSettings, Settings};
use crate::document::{Format, read_file};
use crate::exit::{Exit, Failure};
use crate::thresholds::Resolver;
use crate::zones::FileServices;

/// A file of checks that has been read once.
#[derive(Debug)]
pub struct FileCatalog {
    path: PathBuf,
    most_bytes: u64,
    period: Duration,
    parsed: Parsed,
    settling: Settling,
    resolver: Resolver,
    default_timeout: Duration,
    /// The list in force.
    view: CatalogView,
    /// The endpoints in force.
    services: watch::Sender<Arc<FileServices>>,
    /// What was told last of a file that cannot be read.
    trouble: Option<String>,
    quiet: Quiet<Stamp>,
}

/// What changes with a file.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Of the file that a link leads to, as a ConfigMap's does.
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl FileCatalog {
    /// Reads the file for the first time.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has faults: all of them. There is no earlier version
    /// to fall back on.
    pub fn open(settings: &Settings) -> Result<Self, Failure> {
        let path = settings.file.path.clone().unwrap_or_default();
        let told = path.display().to_string();
        let refused = |faults: Vec<FileFault>| Failure {
            exit: Exit::Config,
            messages: faults
                .iter()
                .map(|fault| format!("{told}: {fault}"))
                .collect(),
        };
        let bytes = read_file(&path, settings.file.max_size.0)
            .map_err(|text| Failure::new(Exit::Config, format!("{told}: {text}")))?;
        let parsed = parse(&bytes, Format::of(&path)).map_err(refused)?;
        let mut resolver = Resolver::new(settings);
        let default_timeout = settings.probe.default_timeout;
        let (view, faults) = view(&parsed, default_timeout, &mut resolver);
        if !faults.is_empty() {
            return Err(refused(faults));
        }
        warn(&path, &parsed);
        let FileSettings {
            poll_interval,
            max_size,
            ..
        } = settings.file;
        Ok(Self {
            settling: Settling::after(&bytes),
            most_bytes: max_size.0,
            period: poll_interval,
            trouble: None,
            quiet: Quiet::new(),
            path,
            resolver,
            default_timeout,
            services: watch::Sender::new(Arc::new(services(&parsed))),
            parsed,
            view,
        })
    }

    /// The list in force.
    pub fn view(&self) -> &CatalogView {
        &self.view
    }

    /// The endpoints in force, by service.
    pub fn services(&self) -> watch::Receiver<Arc<FileServices>> {
        self.services.subscribe()
    }

    /// What the file says, as far as it is in force.
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// Sends the list, and again whenever the file or the daemon's thresholds
    /// change. Ends when nobody listens any more.
    pub async fn watch(
        mut self,
        mut settings: watch::Receiver<Arc<Settings>>,
        sender: CatalogSender,
    ) {
        let mut ticks = tokio::time::interval(self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut message = Some(CatalogMessage::View(self.view.clone()));
        let mut may_change = true;
        loop {
            if let Some(message) = message.take()
                && sender.send(message).await.is_err()
            {
                return;
            }
            tokio::select! {
                () = sender.closed() => return,
                changed = settings.changed(), if may_change => {
                    // A sender that is gone changes nothing any more.
                    may_change = changed.is_ok();
                    if may_change {
                        let settings = Arc::clone(&settings.borrow_and_update());
                        message = Some(self.resolve_anew(&settings));
                    }
                }
                _ = ticks.tick() => message = self.look().await,
            }
        }
    }

    fn resolve_anew(&mut self, settings: &Settings) -> CatalogMessage {
        self.resolver = Resolver::new(settings);
        self.default_timeout = settings.probe.default_timeout;
        // The file is as good as before; what is wrong now is a matter of the
        // check, and told with its thresholds.
        let (view, _) = view(&self.parsed, self.default_timeout, &mut self.resolver);
        self.view = CatalogView {
            faults: std::mem::take(&mut self.view.faults),
            degraded: self.view.degraded.take(),
            ..view
        };
        CatalogMessage::View(self.view.clone())
    }

    /// Looks at the file, and tells what there is to tell.
    async fn look(&mut self) -> Option<CatalogMessage> {
        // A slow disk must not stop the probes.
        let path = self.path.clone();
        let stamp = tokio::task::spawn_blocking(move || Stamp::of(&path)).await;
        if !self.quiet.must_read(stamp.unwrap_or_default()) {
            return None;
        }
        let (path, most_bytes) = (self.path.clone(), self.most_bytes);
        let content = tokio::task::spawn_blocking(move || read_file(&path, most_bytes))
            .await
            .unwrap_or_else(|error| Err(error.to_string()));
        match self.settling.look(content) {
            Look::Unsettled => {
                self.quiet.disturb();
                None
            }
            Look::Same => {
                // What cleared the trouble is the old version; say so.
                self.trouble.take()?;
                tracing::info!(path = %self.path.display(), "the checks can be read again");
                Some(CatalogMessage::View(self.view.clone()))
            }
            Look::Unreadable(text) => {
                self.quiet.disturb();
                let text = format!("{}: {text}", self.path.display());
                if self.trouble.as_ref() == Some(&text) {
                    return None;
                }
                tracing::error!("{text}; the checks read before stay");
                self.trouble = Some(text.clone());
                Some(CatalogMessage::Trouble(text))
            }
            Look::Settled(bytes) => {
                self.trouble = None;
                Some(self.judge(bytes).await)
            }
        }
    }

    /// Takes a new version, or refuses it.
    async fn judge(&mut self, bytes: Vec<u8>) -> CatalogMessage {
        let format = Format::of(&self.path);
        let parsed = tokio::task::spawn_blocking(move || parse(&bytes, format))
            .await
            .unwrap_or_else(|error| Err(vec![FileFault::whole(error.to_string())]));
        let judged = parsed.and_then(|parsed| {
            let (view, faults) = view(&parsed, self.default_timeout, &mut self.resolver);
            match faults.is_empty() {
                true => Ok((parsed, view)),
                false => Err(faults),
            }
        });
        match judged {
            Ok((parsed, view)) => {
                warn(&self.path, &parsed);
                tracing::info!(
                    path = %self.path.display(),
                    checks = view.checks.len(),
                    "the checks have changed"
                );
                self.services.send_replace(Arc::new(services(&parsed)));
                self.parsed = parsed;
                self.view = view;
            }
            Err(faults) => {
                let path = self.path.display();
                for fault in &faults {
                    tracing::error!("{path}: {fault}");
                }
                let text = format!(
                    "{path}: a new version with {} was refused; the checks read before stay",
                    match faults.len() {
                        1 => "a fault".to_owned(),
                        many => format!("{many} faults"),
                    }
                );
                tracing::error!("{text}");
                self.view.faults = faults
                    .iter()
                    .map(|fault| CatalogFault {
                        id: None,
                        text: format!("{path}: {fault}"),
                    })
                    .collect();
                self.view.degraded = Some(text);
            }
        }
        CatalogMessage::View(self.view.clone())
    }
}

fn warn(path: &Path, parsed: &Parsed) {
    for warning in &parsed.warnings {
        tracing::warn!("{}: {warning}", path.display());
    }
}
