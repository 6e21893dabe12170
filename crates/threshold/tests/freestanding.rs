//! The crate builds into a program that has neither `std` nor an allocator.

use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) {
    let output = command.output().expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}:\n{errors}");
}

/// A crate with a panic handler of its own cannot have `std` anywhere below it
/// (two handlers), and without a global allocator not `alloc` either. The
/// compiler checks both for a static library, which needs no target without an
/// operating system to be installed.
#[test]
fn it_needs_neither_std_nor_an_allocator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("freestanding");
    // Its own target directory, since the other may be locked; no network, since
    // whoever runs this has the dependencies.
    run(
        Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
            .args(["build", "--lib", "--no-default-features", "--offline"])
            .args(["--package", "evenkeel-threshold", "--target-dir"])
            .arg(&out)
            .env("CARGO_PROFILE_DEV_PANIC", "abort")
            .current_dir(root),
    );
    let built = out.join("debug");
    run(
        Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()))
            .args(["--edition", "2024", "-C", "panic=abort"])
            .args(["--crate-type", "staticlib", "--extern"])
            .arg(format!(
                "evenkeel_threshold={}",
                built.join("libevenkeel_threshold.rlib").display()
            ))
            .arg("-L")
            .arg(format!("dependency={}", built.join("deps").display()))
            .arg("--out-dir")
            .arg(&out)
            .arg(root.join("tests/freestanding/firmware.rs")),
    );
}
