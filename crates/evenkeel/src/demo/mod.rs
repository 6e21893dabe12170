//! `evenkeel demo`: a few targets that misbehave, in this process and on real
//! sockets, watched by the real daemon. It shows what their raw results would
//! have reported and what is reported instead.

mod lines;
mod scene;
mod screen;
mod targets;
mod track;

use std::io::Write;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::admin::AdminHandle;
use crate::daemon::Daemon;
use crate::environment::Environment;
use crate::exit::{Exit, Failure};
use crate::shutdown::Request;
use crate::status::StatusFilter;

use track::Track;

/// How often the daemon is asked; the targets are probed twice a second, so no
/// result is missed.
const LOOK: Duration = Duration::from_millis(100);

/// How the demo is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A table that is drawn again and again, for a terminal.
    Live {
        /// Whether characters beyond ASCII can be shown.
        unicode: bool,
    },
    /// A line per change, for a pipe or a log.
    Lines,
    /// As lines, each a JSON object.
    Json,
}

/// Runs the demo until `length` is over, or until a request to stop comes.
///
/// # Errors
///
/// No socket or temporary directory can be had, or `out` cannot be written.
pub async fn run(
    length: Option<Duration>,
    view: View,
    out: &mut (impl Write + Send),
    mut requests: mpsc::Receiver<Request>,
) -> Result<(), Failure> {
    let scene = scene::Scene::set().await?;
    let daemon = Daemon::start(scene.settings(), &Environment::default()).await?;
    let admin = daemon.admin();
    let (stop, stopped) = mpsc::channel(1);
    let mut show = Show {
        view,
        track: Track::new(scene.names()),
        socket: scene.socket(),
        drawn: 0,
    };
    let refuse = Box::new(|| Err(Failure::new(Exit::Config, "the demo has no configuration")));
    let watch = async {
        let result = show.go_on(length, &admin, out, &mut requests).await;
        let _ = stop.send(Request::Shutdown).await;
        result
    };
    let (result, ()) = tokio::join!(watch, daemon.run(stopped, refuse));
    let written = result.and_then(|()| show.end(out));
    match written {
        // As with `demo | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::new(Exit::Io, format!("standard output: {error}"))),
    }
}

struct Show {
    view: View,
    track: Track,
    socket: String,
    /// Lines of the last frame.
    drawn: usize,
}

impl Show {
    async fn go_on(
        &mut self,
        length: Option<Duration>,
        admin: &AdminHandle,
        out: &mut (impl Write + Send),
        requests: &mut mpsc::Receiver<Request>,
    ) -> std::io::Result<()> {
        let mut look = tokio::time::interval(LOOK);
        let end = tokio::time::sleep(length.unwrap_or(Duration::from_secs(365 * 24 * 3600)));
        tokio::pin!(end);
        self.begin(out)?;
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                request = requests.recv() => match request {
                    Some(Request::Reload) => {}
                    Some(Request::Shutdown) | None => return Ok(()),
                },
                _ = look.tick() => {
                    if let Some(report) = admin.status(StatusFilter::default()).await {
                        let news = self.track.take(&report);
                        self.show(&news, out)?;
                    }
                }
            }
        }
    }

    fn begin(&self, out: &mut impl Write) -> std::io::Result<()> {
        match self.view {
            View::Live { .. } => out.write_all(screen::BEGIN.as_bytes()),
            View::Lines => out.write_all(lines::heading(&self.track, &self.socket).as_bytes()),
            View::Json => Ok(()),
        }
    }

    fn show(&mut self, news: &[track::News], out: &mut impl Write) -> std::io::Result<()> {
        match self.view {
            View::Live { unicode } => {
                let frame = screen::frame(&self.track, &self.socket, unicode);
                screen::draw(out, &frame, self.drawn)?;
                self.drawn = frame.lines().count();
            }
            View::Lines => {
                for news in news {
                    out.write_all(lines::line(news).as_bytes())?;
                }
            }
            View::Json => {
                for news in news {
                    out.write_all(lines::json(news).as_bytes())?;
                }
            }
        }
        out.flush()
    }

    fn end(&self, out: &mut impl Write) -> std::io::Result<()> {
        let text = match self.view {
            View::Live { .. } => screen::END.to_owned(),
            View::Lines => lines::summary(&self.track),
            View::Json => lines::json_summary(&self.track),
        };
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_ends_by_itself_and_says_what_was_saved() {
        let (_keep, requests) = mpsc::channel(1);
        let mut out = Vec::new();
        run(Some(Duration::from_secs(4)), View::Json, &mut out, requests)
            .await
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(last["raw_changes"].as_u64().unwrap() > 0, "{text}");
        assert!(
            last["reported_changes"].as_u64() < last["raw_changes"].as_u64(),
            "{text}"
        );
    }
}
