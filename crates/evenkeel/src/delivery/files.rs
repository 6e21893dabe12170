use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use evenkeel_zone_weights::Locality;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays as it is in a file's name.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Files that are replaced as wholes when their content changes.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    written: HashMap<String, String>,
}

impl Files {
    /// Below `directory`, which is made if need be.
    pub(super) fn below(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            written: HashMap::new(),
        })
    }

    /// Replaces a file, unless it has that content already. A file that could
    /// not be written is written with the next change.
    pub(super) fn put(&mut self, name: &str, content: String) -> io::Result<()> {
        if self.written.get(name) == Some(&content) {
            return Ok(());
        }
        let mut file = tempfile::Builder::new()
            .prefix(".evenkeel-")
            .tempfile_in(&self.directory)?;
        file.write_all(content.as_bytes())?;
        readable(file.as_file())?;
        // Envoy sees renames only, and never half a file.
        file.persist(self.directory.join(name))
            .map_err(|error| error.error)?;
        self.written.insert(name.to_owned(), content);
        Ok(())
    }
}

/// For the proxy, which runs as somebody else. A temporary file is private.
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// The file with the endpoints of a service, for Envoy.
pub(super) fn eds_name(service: &str) -> String {
    format!("{}.eds.json", utf8_percent_encode(service, KEPT))
}

/// The file with the endpoints and weights for the callers in a zone, for Envoy.
pub(super) fn weights_name(upstream: &str, callers: &str, zone: &Locality) -> String {
    // Slashes between the parts of a zone become dots, which are in none of them.
    let parts: Vec<_> = [zone.region(), zone.zone(), zone.sub_zone()]
        .into_iter()
        .map(|part| utf8_percent_encode(part, KEPT).to_string())
        .collect();
    let zone = parts.join(".");
    format!(
        "{}.from-{}.{}.eds.json",
        utf8_percent_encode(upstream, KEPT),
        utf8_percent_encode(callers, KEPT),
        zone.trim_matches('.')
    )
}

/// The file with the weights of a pair.
pub(super) fn pair_name(upstream: &str, callers: &str) -> String {
    format!(
        "{}.from-{}.json",
        utf8_percent_encode(upstream, KEPT),
        utf8_percent_encode(callers, KEPT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_the_directory() {
        assert_eq!(eds_name("../web"), "%2E%2E%2Fweb.eds.json");
        assert_eq!(pair_name("web-1", "shop_b"), "web-1.from-shop_b.json");
        let zone = Locality::new("eu", "a/../b", "");
        let name = weights_name("web", "shop", &zone);
        assert_eq!(name, "web.from-shop.eu.a%2F%2E%2E%2Fb.eds.json");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_only_when_it_changes() {
        use std::os::unix::fs::MetadataExt as _;
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("eds");
        let mut files = Files::below(&below).unwrap();
        files.put("a", "1".to_owned()).unwrap();
        let inode = |name| fs::metadata(below.join(name)).unwrap().ino();
        let first = inode("a");
        files.put("a", "1".to_owned()).unwrap();
        assert_eq!(inode("a"), first);
        files.put("a", "2".to_owned()).unwrap();
        assert_ne!(inode("a"), first, "it was renamed into place");
        assert_eq!(fs::read_to_string(below.join("a")).unwrap(), "2");
        assert_eq!(fs::metadata(below.join("a")).unwrap().mode() & 0o777, 0o644);
        assert_eq!(
            fs::read_dir(&below).unwrap().count(),
            1,
            "nothing is left over"
        );
    }
}
