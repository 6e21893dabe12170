//! The crate builds into a program that has an allocator and no `std`.

use std::path::Path;
use std::process::Command;

/// A program with a panic handler of its own cannot have `std` anywhere below it:
/// there would be two. The compiler checks that for a static library, which needs
/// no target without an operating system to be installed.
#[test]
fn it_needs_an_allocator_and_no_std() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
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
        &["--crate-name", "evenkeel_zone_weights"],
    );
    let rlib = out.join("libevenkeel_zone_weights.rlib");
    let with = format!("evenkeel_zone_weights={}", rlib.display());
    compile(
        "tests/freestanding/firmware.rs",
        "staticlib",
        &["--extern", &with],
    );
}
