use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads a file of at most `most` bytes.
///
/// # Errors
///
/// A sentence for people, without the path.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(cannot)?;
    let kind = file.metadata().map_err(cannot)?;
    if kind.is_dir() {
        return Err("cannot be read: it is a directory".to_owned());
    }
    // The length of a pipe is not known, and that of a file may change.
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than {}", crate::config::ByteSize(most)));
    }
    Ok(bytes)
}
