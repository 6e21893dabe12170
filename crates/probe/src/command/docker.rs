//! A command in a Docker container.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::ExecInspectResponse;
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::api::{self, Host};
use super::{Ends, failed, place, verdict};
use crate::capture::line;
use crate::definition::DockerCheck;
use crate::fault::{Failure, connect_cause, describe};
use crate::kind::Kind;
use crate::prober::{SettingsError, Shared};
use crate::progress::Progress;
use crate::report::{Cause, Phase, Report};

/// How many commands one daemon is asked to run at once (P100).
const PLACES: usize = 16;

/// The pause between two looks at a command that runs, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LOOKS: Duration = Duration::from_secs(1);

/// How long output is waited for once the command has ended.
const REST: Duration = Duration::from_millis(100);

/// The first step, the only one that is not about a container.
const CONNECT: &str = "connect";

/// The most commands that are remembered to be still running.
const MAX_LEFT: usize = 4096;

impl Kind for DockerCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.container()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        match &shared.docker {
            Some(daemon) => Box::pin(run(self, daemon, progress)).await,
            None => Err(Failure::unprobed(
                Cause::Disabled,
                "Docker checks are not enabled",
            )),
        }
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        failed("docker", self.target(), &failure, progress)
    }
}

/// A Docker daemon, as all checks share it.
pub(crate) struct Daemon {
    host: Arc<Host>,
    /// Made at the first probe: the daemon may be away when we start.
    client: Mutex<Option<Docker>>,
    places: Semaphore,
    /// Commands that outlived their probes, by check. The API has no call that
    /// ends one; it can only be kept from being started again beside itself.
    left: Mutex<HashMap<Key, String>>,
}

/// Who started a command.
type Key = DockerCheck;

impl Daemon {
    /// The daemon at `host`, which is `unix:///path` or `tcp://host:port`.
    pub(crate) fn new(host: &str) -> Result<Self, SettingsError> {
        let host = match host.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Host::Unix(path.to_owned()),
            Some(("tcp" | "http", address)) if !address.is_empty() => Host::Tcp(address.to_owned()),
            _ => return Err(SettingsError::DockerHost),
        };
        Ok(Self {
            host: Arc::new(host),
            client: Mutex::default(),
            places: Semaphore::new(PLACES),
            left: Mutex::default(),
        })
    }

    /// A client that speaks the daemon's version of the API.
    async fn client(&self) -> Result<Docker, Error> {
        let known = lock(&self.client).clone();
        if let Some(client) = known {
            return Ok(client);
        }
        let client = api::client(&self.host)?;
        let client = client.negotiate_version().await?;
        *lock(&self.client) = Some(client.clone());
        Ok(client)
    }

    /// Another version may run when the daemon comes back.
    fn forget_client(&self) {
        *lock(&self.client) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command under way; if the probe ends before it, it is remembered.
struct Started<'a> {
    daemon: &'a Daemon,
    check: &'a DockerCheck,
    id: String,
    ended: bool,
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut left = lock(&self.daemon.left);
        // Only checks that are gone can pile up.
        if left.len() >= MAX_LEFT {
            left.clear();
        }
        left.insert(self.check.clone(), std::mem::take(&mut self.id));
    }
}

/// One call of the API, within its own part of the time.
struct Steps<'a> {
    daemon: &'a Daemon,
    each: Duration,
}

impl Steps<'_> {
    async fn take<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(self.each, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                let failure = fault(what, &error);
                if failure.cause.is_some() {
                    self.daemon.forget_client();
                }
                Err(failure)
            }
            Err(_) => Err(Failure::unprobed(
                Cause::Docker,
                format!("{what}: the Docker daemon does not answer"),
            )),
        }
    }
}

async fn run(
    check: &DockerCheck,
    daemon: &Daemon,
    progress: &mut Progress,
) -> Result<Report, Failure> {
    progress.enter(Phase::Connect);
    let _place = place(daemon.places.acquire(), check.timeout(), progress)
        .await
        .ok_or_else(|| Failure::unprobed(Cause::Docker, "too many commands run already"))?;
    progress.own_fault = Some((
        Cause::Docker,
        "the Docker daemon does not answer: context deadline exceeded".to_owned(),
    ));
    let steps = Steps {
        daemon,
        each: check.timeout() / 2,
    };
    let client = steps.take(CONNECT, daemon.client()).await?;
    not_running_still(check, daemon, &client, &steps).await?;

    let options = CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(check.command().map(str::to_owned).collect()),
        ..CreateExecOptions::default()
    };
    let created = client.create_exec(check.container(), options);
    let created = steps.take("create exec", created).await?;
    let mut started = Started {
        daemon,
        check,
        id: created.id,
        ended: false,
    };
    let attached = client.start_exec(&started.id, None);
    let mut output = match steps.take("start exec", attached).await {
        Ok(StartExecResults::Attached { output, .. }) => output,
        Ok(StartExecResults::Detached) => {
            return Err(Failure::unprobed(Cause::Docker, "start exec: not attached"));
        }
        Err(failure) => {
            // Refused, so there is nothing that could run on.
            started.ended = failure.cause.is_none();
            return Err(failure);
        }
    };

    progress.own_fault = None;
    progress.enter(Phase::Run);
    let said = progress
        .said
        .insert(Box::new(Ends::new(check.output_max_size())));
    let mut pause = FIRST_LOOK;
    let mut next_look = Instant::now() + pause;
    let mut open = true;
    let code = loop {
        // The end of the output is no sign of the command's end, nor the other way round:
        // a process in the background may hold it open for ever (P166).
        tokio::select! {
            chunk = output.next(), if open => match chunk {
                Some(Ok(chunk)) => {
                    said.push(&chunk.into_bytes());
                    continue;
                }
                Some(Err(_)) | None => open = false,
            },
            () = tokio::time::sleep_until(next_look) => {}
        }
        let seen = steps.take("inspect exec", client.inspect_exec(&started.id));
        if let Some(code) = exit_code(&seen.await?) {
            break code;
        }
        next_look = Instant::now() + pause;
        pause = (pause * 2).min(LOOKS);
    };
    started.ended = true;
    let rest = async {
        while let Some(Ok(chunk)) = output.next().await {
            said.push(&chunk.into_bytes());
        }
    };
    if open {
        let _ = tokio::time::timeout(REST, rest).await;
    }
    Ok(verdict(code, progress))
}

fn exit_code(seen: &ExecInspectResponse) -> Option<i64> {
    match seen.running {
        Some(true) => None,
        // It may not have been started yet, or the daemon has not noted the end.
        _ => seen.exit_code,
    }
}

/// Never two runs of a check at once (P098, P101).
async fn not_running_still(
    check: &DockerCheck,
    daemon: &Daemon,
    client: &Docker,
    steps: &Steps<'_>,
) -> Result<(), Failure> {
    let left = lock(&daemon.left).get(check).cloned();
    let Some(id) = left else {
        return Ok(());
    };
    match steps.take("inspect exec", client.inspect_exec(&id)).await {
        Ok(seen) if seen.running == Some(true) => Err(Failure::critical(
            "the command of an earlier probe is still running, and Docker has no way to end it",
        )),
        // It has ended, or is gone with its container.
        Ok(_) | Err(Failure { cause: None, .. }) => {
            lock(&daemon.left).remove(check);
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

/// What is the same to a reader, however far the call had come.
fn no_answer(error: &hyper::Error) -> Option<&'static str> {
    // It has no other sign of an answer before the question.
    let is_early = error.to_string() == "received unexpected message from connection";
    if is_early || error.is_parse() && !error.is_parse_too_large() {
        Some("what came is no HTTP")
    } else if error.is_closed() || error.is_canceled() || error.is_incomplete_message() {
        Some("the connection was closed before there was an answer")
    } else {
        None
    }
}

fn fault(what: &str, error: &Error) -> Failure {
    if let Error::DockerResponseServerError {
        status_code,
        message,
    } = error
    {
        let text = match line(message) {
            said if said.is_empty() => format!("{what}: the answer is HTTP {status_code}"),
            said => format!("{what}: {said}"),
        };
        // The runtime's words for a program that is not there; older daemons call it their fault.
        let is_program = message.contains("OCI runtime");
        return match status_code {
            401 | 403 => Failure::unprobed(Cause::Permission, text),
            500.. if !is_program => Failure::unprobed(Cause::Docker, text),
            // No such container, not running, paused; before a container was asked for, there is
            // no Docker daemon.
            404 | 409 if what != CONNECT => Failure::critical(text),
            _ if is_program => Failure::critical(text),
            // Among them: a version of the API that it does not speak.
            _ => Failure::unprobed(Cause::Docker, text),
        };
    }
    if let Error::HyperResponseError { err } = error
        && let Some(said) = no_answer(err)
    {
        return Failure::unprobed(Cause::Docker, format!("{what}: {said}"));
    }
    // It does not name what it wraps as its source.
    let mut deepest: &dyn std::error::Error = match error {
        Error::IOError { err } => err,
        other => other,
    };
    let mut cause = Cause::Docker;
    loop {
        if let Some(error) = deepest.downcast_ref::<io::Error>()
            && let Some(ours) = connect_cause(error, false)
        {
            cause = ours;
        }
        match deepest.source() {
            Some(source) => deepest = source,
            None => break,
        }
    }
    let said = match deepest.downcast_ref() {
        Some(error) => describe(error),
        None => deepest.to_string(),
    };
    Failure::unprobed(cause, format!("{what}: {}", line(&said)))
}
