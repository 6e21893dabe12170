use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

use crate::config::Listen;

/// Who may use a unix socket.
#[derive(Debug, Clone)]
pub struct SocketAccess {
    /// Its permission bits.
    pub mode: u32,
    /// The group that owns it, by name or number.
    pub group: Option<String>,
}

/// A socket that is listened on.
#[derive(Debug)]
pub enum Bound {
    /// A unix socket; removed when this is dropped.
    Unix(UnixListener, SocketFile),
    /// A TCP port.
    Tcp(TcpListener, SocketAddr),
}

/// A socket's file, which goes when its listener goes.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed by somebody else; nothing is left then.
        let _ = fs::remove_file(&self.0);
    }
}

/// A socket that cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A unix socket.
    #[error("unix socket {path}: {error}")]
    Unix {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A TCP port.
    #[error("address {address}: {error}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
}

/// Listens.
///
/// A unix socket that a dead process left is replaced; one that somebody
/// answers on is not. It appears at its path only when its mode and group are
/// set.
///
/// # Errors
///
/// [`BindError`] with the cause.
pub async fn bind(listen: &Listen, access: &SocketAccess) -> Result<Bound, BindError> {
    match listen {
        Listen::Unix(path) => bind_unix(path, access)
            .await
            .map_err(|error| BindError::Unix {
                path: path.clone(),
                error,
            }),
        Listen::Tcp(address) => bind_tcp(*address).await.map_err(|error| BindError::Tcp {
            address: *address,
            error,
        }),
    }
}

async fn bind_tcp(address: SocketAddr) -> io::Result<Bound> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    Ok(Bound::Tcp(listener, bound))
}

async fn bind_unix(path: &Path, access: &SocketAccess) -> io::Result<Bound> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => {
            if tokio::net::UnixStream::connect(path).await.is_ok() {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another process answers there",
                ));
            }
        }
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is something that is not a socket",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut new = path.to_owned().into_os_string();
    new.push(format!(".{}", std::process::id()));
    let new = PathBuf::from(new);
    let _ = fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    let made = SocketFile(new);
    if let Some(group) = &access.group {
        chown(made.path(), None, Some(group_id(group)?))?;
    }
    fs::set_permissions(made.path(), fs::Permissions::from_mode(access.mode))?;
    fs::rename(made.path(), path)?;
    Ok(Bound::Unix(listener, SocketFile(path.to_owned())))
}

/// The number of a group, from its number or from `/etc/group`.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    fs::read_to_string("/etc/group")?
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
        })
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no group `{group}` in /etc/group"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(group: Option<&str>) -> SocketAccess {
        SocketAccess {
            mode: 0o640,
            group: group.map(Into::into),
        }
    }

    #[tokio::test]
    async fn the_socket_has_its_mode_and_goes_with_its_listener() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/admin.sock");
        let bound = bind(&Listen::Unix(path.clone()), &access(None))
            .await
            .unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        drop(bound);
        assert!(!path.exists());
    }

    // A kill -9 leaves the file behind.
    #[tokio::test]
    async fn a_socket_nobody_answers_on_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _bound = bind(&Listen::Unix(path.clone()), &access(None))
            .await
            .unwrap();
        let error = bind(&Listen::Unix(path.clone()), &access(None))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        fs::write(&path, "precious").unwrap();
        bind(&Listen::Unix(path.clone()), &access(None))
            .await
            .unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn groups_by_number_and_by_name() {
        assert_eq!(group_id("12").unwrap(), 12);
        assert_eq!(group_id("root").unwrap(), 0);
        assert!(
            group_id("no-such-group")
                .unwrap_err()
                .to_string()
                .contains("no-such-group")
        );
    }
}
