//! From layers to settings: defaults < variables of Consul and systemd < files <
//! `EVENKEEL_*` < flags.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use figment::Figment;

use super::layer::{Fault, Layer, LayerName, Numbered, Origin};
use super::{CatalogKind, Settings, check, names, variables};
use crate::document::{self, Format, Node, Place, Shape, Value};
use crate::environment::Environment;

/// A larger configuration file is refused.
const MOST_BYTES: u64 = 1 << 20;

/// Pairs of keys of which one is used instead of the other. In one layer both
/// are a fault; else the later layer's counts.
const EITHER: [(&str, &str); 4] = [
    ("consul.token", "consul.token_file"),
    ("consul.ca_file", "consul.ca_path"),
    ("probe.https_ca_file", "probe.https_ca_path"),
    ("admin.token", "admin.token_file"),
];

/// What the command line says of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Files, in order; later ones win.
    pub files: Vec<PathBuf>,
    /// Directories of files, read after `files`, by name.
    pub directories: Vec<PathBuf>,
    /// Settings, as key, text, and the flag as typed.
    pub flags: Vec<(String, String, String)>,
}

/// What all layers say together.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings in effect. With faults, what is left without the faulty
    /// parts: good for the form of the log, and for nothing else.
    pub settings: Settings,
    /// Everything that is wrong. Empty: the settings may be used.
    pub faults: Vec<Fault>,
    /// What is likely not meant, but can be used.
    pub warnings: Vec<Fault>,
    /// Nothing says what to watch, and nothing else is wrong.
    pub nothing_to_watch: bool,
    origins: Origins,
}

impl Loaded {
    /// Where the value of a key (`consul.address`) comes from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.of(key)
    }
}

/// Which layer set what.
#[derive(Debug, Clone)]
pub(super) struct Origins {
    figment: Figment,
    layers: Vec<Layer>,
}

impl Origins {
    /// The layer that set a key, by its place in the order.
    fn rank(&self, key: &str) -> Option<usize> {
        // A list is set as a whole, and figment knows no indexes.
        let key = key.split('[').next()?;
        self.figment.find_metadata(key)?.name.parse().ok()
    }

    pub(super) fn of(&self, key: &str) -> Origin {
        let Some(layer) = self.rank(key).and_then(|rank| self.layers.get(rank)) else {
            return Origin::Default;
        };
        // A fault may be of a key that is missing in an entry.
        let mut key = key;
        let node = loop {
            match (layer.root.find(key), key.rsplit_once('.')) {
                (None, Some((parent, _))) => key = parent,
                (found, _) => break found,
            }
        };
        layer
            .name
            .origin(node.map_or(&Place::Unknown, |node| &node.place))
    }

    /// The last layer that sets anything below a table.
    fn last_rank(&self, table: &str) -> Option<usize> {
        let set = |layer: &Layer| match layer.root.find(table).map(|node| &node.value) {
            Some(Value::Table(entries)) => !entries.is_empty(),
            Some(_) => true,
            None => false,
        };
        self.layers.iter().rposition(set)
    }
}

/// What the settings may hold.
pub(super) fn shape() -> &'static Shape {
    static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<Settings>);
    &SHAPE
}

/// Reads all layers and checks what they say, as parts and as a whole.
pub fn load(inputs: &Inputs, environment: &Environment) -> Loaded {
    let shape = shape();
    let mut faults = Vec::new();
    let mut layers = vec![variables::consul(environment, shape, &mut faults)];
    let mut unreadable = false;
    for path in files(inputs, environment, &mut faults) {
        layers.push(file(&path, &mut faults, &mut unreadable));
    }
    layers.push(variables::ours(environment, shape, &mut faults));
    variables::not_utf8(environment, &mut faults);
    layers.push(variables::flags(&inputs.flags, shape, &mut faults));

    for layer in &mut layers {
        rename(layer, &mut faults);
        let wrong = document::verify(&mut layer.root, shape, &|path, key| match path.is_root() {
            true => names::hint(key),
            false => None,
        });
        // What could be read of a damaged file may lack whatever makes it right.
        let damaged = faults
            .iter()
            .any(|fault: &Fault| fault.key.is_empty() && is_of(fault, &layer.name));
        if !damaged {
            faults.extend(wrong.iter().map(|fault| Fault::of(&layer.name, fault)));
        }
    }
    choose(&mut layers, shape, &mut faults);

    let figment = layers
        .iter()
        .enumerate()
        .fold(Figment::new(), |figment, (rank, layer)| {
            figment.merge(Numbered(rank, layer))
        });
    let mut settings = figment.extract::<Settings>().unwrap_or_else(|errors| {
        // Verified layers read; if not, saying so is all that is left.
        faults.extend(errors.into_iter().map(|error| Fault {
            origin: Origin::Default,
            key: error.path.join("."),
            text: error.kind.to_string(),
        }));
        Settings::default()
    });
    let origins = Origins { figment, layers };
    let mut warnings = Vec::new();
    let mut nothing_to_watch = false;
    if !unreadable {
        infer_catalog(&mut settings, &origins, &mut faults);
        let found = check::check(&settings);
        let placed = |(key, text): (String, String)| Fault {
            origin: origins.of(&key),
            key,
            text,
        };
        faults.extend(found.faults.into_iter().map(placed));
        warnings.extend(found.warnings.into_iter().map(placed));
        nothing_to_watch = settings.catalog.is_none() && faults.is_empty();
    }
    Loaded {
        settings,
        faults,
        warnings,
        nothing_to_watch,
        origins,
    }
}

fn is_of(fault: &Fault, layer: &LayerName) -> bool {
    match (&fault.origin, layer) {
        (Origin::File(path, _), LayerName::File(of)) => path.as_path() == &**of,
        _ => false,
    }
}

/// The files to read, in order.
fn files(inputs: &Inputs, environment: &Environment, faults: &mut Vec<Fault>) -> Vec<PathBuf> {
    let from_variable = |name| environment.get(name).map(PathBuf::from);
    let mut files: Vec<PathBuf> = from_variable("EVENKEEL_CONFIG_FILE").into_iter().collect();
    files.extend(inputs.files.iter().cloned());
    let directories = from_variable("EVENKEEL_CONFIG_DIR")
        .into_iter()
        .chain(inputs.directories.iter().cloned());
    for directory in directories {
        match in_directory(&directory) {
            Ok(found) => files.extend(found),
            Err(error) => faults.push(of_file(&directory, format!("cannot be read: {error}"))),
        }
    }
    files
}

/// The files of a directory that are ours to read, by name. HCL files are among
/// them, to be refused rather than passed over.
fn in_directory(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let known = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| ["toml", "json", "hcl"].contains(&extension));
        if known && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn of_file(path: &Path, text: String) -> Fault {
    Fault {
        origin: Origin::File(path.to_path_buf(), 0),
        key: String::new(),
        text,
    }
}

fn file(path: &Path, faults: &mut Vec<Fault>, unreadable: &mut bool) -> Layer {
    let mut layer = Layer {
        name: LayerName::File(Arc::from(path)),
        root: Node::table(),
    };
    if path.extension().is_some_and(|extension| extension == "hcl") {
        let text = "HCL is not read yet; write it as TOML or JSON (see `evenkeel config example`)";
        faults.push(of_file(path, text.to_owned()));
        return layer;
    }
    let bytes = match crate::document::read_file(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(text) => {
            *unreadable = true;
            faults.push(of_file(path, text));
            return layer;
        }
    };
    match document::read(&bytes, Format::of(path)) {
        Ok(root) => layer.root = root,
        Err((root, wrong)) => {
            *unreadable = true;
            layer.root = root;
            faults.extend(wrong.iter().map(|fault| Fault {
                // Marks the file as damaged, whatever the fault is of.
                key: String::new(),
                text: match fault.path.is_root() {
                    true => fault.text.clone(),
                    false => format!("{}: {}", fault.path, fault.text),
                },
                ..Fault::of(&layer.name, fault)
            }));
            if Format::of(path) == Format::Json && asks_for_json_log(&bytes) {
                let word = Node::new(Place::Unknown, Value::Text("json".to_owned()));
                layer.root.put(&["log", "format"], word);
            }
        }
    }
    layer
}

/// Whether a damaged JSON file seems to ask for a log in JSON. The faults
/// themselves have to be told in that form (P068).
fn asks_for_json_log(bytes: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    text.contains(r#""format":"json""#)
}

/// Puts the keys that have another name under their own.
fn rename(layer: &mut Layer, faults: &mut Vec<Fault>) {
    for (alias, key) in names::ALIASES {
        let table = key.split('.').next().and_then(|name| layer.root.get(name));
        if table.is_some_and(|table| !matches!(table.value, Value::Table(_))) {
            continue;
        }
        let Some(mut node) = layer.root.remove(alias) else {
            continue;
        };
        if let Value::Text(text) = &mut node.value {
            *text = names::meant(alias, text).to_owned();
        }
        if layer.root.find(key).is_some() {
            faults.push(Fault {
                origin: layer.name.origin(&node.place),
                key: alias.to_owned(),
                text: format!("{key} is set as well, and they are the same"),
            });
            continue;
        }
        let path: Vec<&str> = key.split('.').collect();
        layer.root.put(&path, node);
    }
}

/// Takes out of a layer what a later one replaces as a whole: maps, and the
/// other one of a pair.
fn choose(layers: &mut [Layer], shape: &Shape, faults: &mut Vec<Fault>) {
    for layer in layers.iter() {
        for (one, other) in EITHER {
            if let (Some(node), Some(_)) = (layer.root.find(one), layer.root.find(other)) {
                faults.push(Fault {
                    origin: layer.name.origin(&node.place),
                    key: one.to_owned(),
                    text: format!("{other} is set as well; only one of them can be used"),
                });
            }
        }
    }
    let maps: Vec<String> = names::keys(shape)
        .into_iter()
        .filter(|key| {
            let path: Vec<&str> = key.split('.').collect();
            matches!(shape.find(&path), Some(Shape::Map(_)))
        })
        .collect();
    for rank in (1..layers.len()).rev() {
        let (earlier, rest) = layers.split_at_mut(rank);
        let Some(layer) = rest.first() else {
            continue;
        };
        let has = |key: &str| layer.root.find(key).is_some();
        let mut replaced: Vec<&str> = maps
            .iter()
            .map(String::as_str)
            .filter(|key| has(key))
            .collect();
        for (one, other) in EITHER {
            replaced.extend(has(one).then_some(other));
            replaced.extend(has(other).then_some(one));
        }
        for key in replaced {
            for layer in earlier.iter_mut() {
                layer.root.take(key);
            }
        }
    }
}

/// When the catalog is not named, it is the one that is configured; of both, the
/// one in the later layer.
fn infer_catalog(settings: &mut Settings, origins: &Origins, faults: &mut Vec<Fault>) {
    if settings.catalog.is_some() {
        return;
    }
    let consul = origins.last_rank("consul");
    let file = origins.last_rank("file.path");
    settings.catalog = match (consul, file) {
        (None, None) => None,
        (Some(_), None) => Some(CatalogKind::Consul),
        (None, Some(_)) => Some(CatalogKind::File),
        (Some(consul), Some(file)) if consul > file => Some(CatalogKind::Consul),
        (Some(consul), Some(file)) if file > consul => Some(CatalogKind::File),
        (Some(_), Some(_)) => {
            faults.push(Fault {
                origin: origins.of("file.path"),
                key: "file.path".to_owned(),
                text: "[consul] is configured as well: say catalog = \"consul\" or \"file\""
                    .to_owned(),
            });
            None
        }
    };
}
