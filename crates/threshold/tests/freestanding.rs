//! The crate builds into a program that has neither `std` nor an allocator.

use std::path::Path;
use std::process::Command;

/// A crate with a panic handler of its own cannot have `std` anywhere below it
/// (two handlers), and without a global allocator not `alloc` either. The
/// compiler checks both for a static library, which needs no target without an
/// operating system to be installed.
#[test]
fn it_needs_neither_std_nor_an_allocator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let rlib = out.join("libevenkeel_threshold.rlib");
    let compile = |input: &str, kind: &str, extra: &[&str]| {
        let output = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
            .args([
                "--edition",
                "2024",
                "-C",
                "panic=abort",
                "--crate-type",
                kind,
            ])
            .args(extra)
            .arg("--out-dir")
            .arg(out)
            .arg(root.join(input))
            .output()
            .expect("rustc runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{input}:\n{errors}");
    };
    compile(
        "src/lib.rs",
        "rlib",
        &["--crate-name", "evenkeel_threshold"],
    );
    let with = format!("evenkeel_threshold={}", rlib.display());
    compile(
        "tests/freestanding/firmware.rs",
        "staticlib",
        &["--extern", &with],
    );
}
