//! A command on this machine.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::{Ends, failed, place, verdict};
use crate::definition::ScriptCheck;
use crate::fault::{Failure, describe, resource_cause};
use crate::kind::Kind;
use crate::off_thread::off_thread;
use crate::prober::Shared;
use crate::progress::Progress;
use crate::report::{Cause, Phase, Report};

/// Where programs without a path are looked for. The monitor's own may have
/// places that only its user is to use.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long output is waited for once the program and its group are gone: what
/// they wrote is in the pipe, but a process that left the group may hold it.
const REST: Duration = Duration::from_millis(100);

impl Kind for ScriptCheck {
    fn timeout(&self) -> Duration {
        self.timeout()
    }

    fn target(&self) -> &str {
        self.command().next().unwrap_or_default()
    }

    async fn run(&self, shared: &Shared, progress: &mut Progress) -> Result<Report, Failure> {
        Box::pin(run(self, shared, progress)).await
    }

    fn failed(&self, failure: Failure, progress: &Progress) -> Report {
        failed("script", self.target(), &failure, progress)
    }
}

async fn run(
    check: &ScriptCheck,
    shared: &Shared,
    progress: &mut Progress,
) -> Result<Report, Failure> {
    let Some(places) = &shared.scripts else {
        return Err(Failure::unprobed(
            Cause::Disabled,
            "script checks are not enabled",
        ));
    };
    let acquiring = Arc::clone(places).acquire_owned();
    let place = place(acquiring, check.timeout(), progress)
        .await
        .ok_or_else(|| Failure::unprobed(Cause::System, "too many scripts run already"))?;
    progress.own_fault = Some((
        Cause::System,
        "starting the program: context deadline exceeded".to_owned(),
    ));
    let mut running = start(check, place).await?;
    progress.own_fault = None;
    progress.enter(Phase::Run);
    let said = progress
        .said
        .insert(Box::new(Ends::new(check.output_max_size())));
    let ended = running.finish(said).await;
    let status = ended.map_err(|error| cannot(&error, "waiting for the program"))?;
    match status.code() {
        Some(code) => Ok(verdict(code.into(), progress)),
        None => Err(Failure::critical(format!("the program ended by {status}"))),
    }
}

/// A program with the processes that it has started.
struct Running {
    // Goes first: while the child has not been waited for, the group is surely its own.
    group: Group,
    /// `None` once it has been waited for.
    child: Option<Child>,
    output: Receiver,
    /// Taken as long as this is there.
    _place: OwnedSemaphorePermit,
}

/// The process group of a program; killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // It fails if nobody is left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the program, off the runtime's thread: it may lie on a file system
/// that hangs. Should the probe be over by then, the program is killed at once.
async fn start(check: &ScriptCheck, place: OwnedSemaphorePermit) -> Result<Running, Failure> {
    let (output, input) =
        io::pipe().map_err(|error| cannot(&error, "making a pipe for the output"))?;
    let errors = input
        .try_clone()
        .map_err(|error| cannot(&error, "making a pipe for the output"))?;
    let mut arguments = check.command();
    let program = arguments.next().unwrap_or_default();
    let mut command = Command::new(program);
    // No descriptor but these three is inherited: all that Rust opens is closed by `exec`.
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .envs(check.environment())
        .current_dir(check.directory())
        .stdin(Stdio::null())
        .stdout(input)
        .stderr(errors)
        .process_group(0)
        .kill_on_drop(true);
    let spawn = move || {
        let child = command.spawn()?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        // The command holds the pipe's other end, which has to be the program's alone.
        drop(command);
        let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
        Ok(Running {
            group,
            child: Some(child),
            output,
            _place: place,
        })
    };
    off_thread(spawn)
        .await
        .and_then(|started| started)
        .map_err(|error| cannot(&error, "fork/exec"))
}

/// A program that is killed has to be waited for all the same.
impl Drop for Running {
    fn drop(&mut self) {
        self.group.kill();
        if let (Some(mut child), Ok(runtime)) = (self.child.take(), Handle::try_current()) {
            runtime.spawn(async move { child.wait().await });
        }
    }
}

impl Running {
    async fn finish(&mut self, said: &mut Ends) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else {
            return Err(ErrorKind::NotFound.into());
        };
        let mut buffer = [0; 4096];
        let mut open = true;
        let status = loop {
            tokio::select! {
                read = self.output.read(&mut buffer), if open => match read {
                    Ok(count @ 1..) => said.push(&buffer[..count]),
                    Ok(0) | Err(_) => open = false,
                },
                status = child.wait() => break status?,
            }
        };
        // What the program has left behind. Its number cannot have been given to another
        // in the moment since it was waited for: numbers are given out in turn.
        self.group.kill();
        self.child = None;
        let rest = async {
            while let Ok(count @ 1..) = self.output.read(&mut buffer).await {
                said.push(&buffer[..count]);
            }
        };
        if open {
            let _ = tokio::time::timeout(REST, rest).await;
        }
        Ok(status)
    }
}

/// That a program cannot be run says nothing of what it would have found.
fn cannot(error: &io::Error, doing: &str) -> Failure {
    let cause = match error.kind() {
        // A fork that finds no more processes says `EAGAIN`.
        ErrorKind::WouldBlock => Cause::Processes,
        ErrorKind::PermissionDenied => Cause::Permission,
        _ => resource_cause(error).unwrap_or(Cause::System),
    };
    Failure::unprobed(cause, format!("{doing}: {}", describe(error)))
}
