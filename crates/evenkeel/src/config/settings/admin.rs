use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Environment;
use crate::config::text::{FileMode, Listen, Secret};

/// The server for status, metrics, liveness and readiness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct AdminSettings {
    /// Where it listens: "unix:/path/to/socket" or an address such as
    /// "127.0.0.1:8600", one or several. Empty: the unix socket
    /// $RUNTIME_DIRECTORY/admin.sock (systemd sets it), else
    /// /run/evenkeel/admin.sock, else $XDG_RUNTIME_DIR/evenkeel/admin.sock, the
    /// first that can be made. An address that is not loopback needs `token` or
    /// `token_file`.
    #[schemars(example = ["unix:/run/evenkeel/admin.sock", "127.0.0.1:8600"])]
    pub listen: Vec<Listen>,

    /// Access bits of the unix socket, in octal.
    pub mode: FileMode,

    /// Group that owns the unix socket, by name or number. Without it, the
    /// group of the process.
    #[schemars(example = &"adm")]
    pub group: Option<String>,

    /// Token that a request must carry (Authorization: Bearer …) where an
    /// address that is not loopback is listened on.
    #[schemars(example = &"a long random text")]
    pub token: Option<Secret>,

    /// File that holds that token, instead of `token`.
    #[schemars(example = &"/etc/evenkeel/admin-token")]
    pub token_file: Option<PathBuf>,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            mode: FileMode(0o660),
            group: None,
            token: None,
            token_file: None,
        }
    }
}

/// The sockets that an empty `admin.listen` stands for, best first. The daemon
/// takes the first that it can make, `status` the first that answers.
pub fn default_sockets(environment: &Environment) -> Vec<PathBuf> {
    let within = |name: &str, below: &str| {
        let directory = environment.get(name)?;
        // Systemd separates several directories by colons.
        let first = directory.split(':').next()?;
        first
            .starts_with('/')
            .then(|| PathBuf::from(first).join(below))
    };
    let mut sockets: Vec<PathBuf> = within("RUNTIME_DIRECTORY", "admin.sock")
        .into_iter()
        .chain([PathBuf::from("/run/evenkeel/admin.sock")])
        .chain(within("XDG_RUNTIME_DIR", "evenkeel/admin.sock"))
        .collect();
    sockets.dedup();
    sockets
}
