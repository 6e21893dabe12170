use std::fmt::Write as _;
use std::time::Duration;

use crate::config::{CatalogKind, Settings};
use crate::demo::targets::{self, CHARACTERS, TIMEOUT};
use crate::exit::{Exit, Failure};

/// Time between two probes of a target.
const INTERVAL: Duration = Duration::from_millis(500);

/// The demo's thresholds: critical at the fourth failure, passing again at the
/// third success.
pub(super) const CRITICAL: u32 = 3;
pub(super) const PASSING: u32 = 2;

/// The targets, and a file that lists them.
#[derive(Debug)]
pub(super) struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    /// Starts the targets and writes the file.
    pub(super) async fn set() -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::new(Exit::CannotCreate, format!("the demo: {error}"));
        let directory = tempfile::Builder::new()
            .prefix("evenkeel-demo-")
            .tempdir()
            .map_err(failed)?;
        let mut file = String::new();
        for character in CHARACTERS {
            let address = targets::start(character).await.map_err(failed)?;
            // Writing to a string does not fail.
            let _ = write!(
                file,
                "[[check]]\nnode = \"demo\"\nname = \"{}\"\nhttp = \"http://{address}/\"\n\
                 interval = \"{}ms\"\ntimeout = \"{}ms\"\ninitial_status = \"passing\"\n\n",
                character.name,
                INTERVAL.as_millis(),
                TIMEOUT.as_millis(),
            );
        }
        std::fs::write(directory.path().join("checks.toml"), file).map_err(failed)?;
        Ok(Self { directory })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        CHARACTERS
            .into_iter()
            .map(|character| (character.name, character.what))
    }

    /// Where the demo's daemon can be asked.
    pub(super) fn socket(&self) -> String {
        let path = self.directory.path().join("admin.sock");
        format!("unix:{}", path.display())
    }

    pub(super) fn settings(&self) -> Settings {
        let mut settings = Settings {
            catalog: Some(CatalogKind::File),
            ..Settings::default()
        };
        settings.file.path = Some(self.directory.path().join("checks.toml"));
        settings.schedule.minimum_interval = INTERVAL;
        settings.threshold.set("critical_threshold", CRITICAL);
        settings.threshold.set("passing_threshold", PASSING);
        settings.run.shutdown_grace = Duration::from_secs(1);
        // Its own, so that it gets in nobody's way.
        settings.admin.listen = self.socket().parse().into_iter().collect();
        settings
    }
}
