//! Link options of the program.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // Every command starts through this program, and a program at a fixed address starts a millisecond
    // sooner: otherwise 50,000 addresses have to be relocated on every start.
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if std::env::var("HOST") == std::env::var("TARGET") {
            link_unwinder();
        }
    }
}

/// Links the unwinder into the program if the compiler has it as an archive: one shared library less to load, whose
/// constructor asks the processor for its features, which takes long in a virtual machine.
fn link_unwinder() {
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Ok(told) = asked else { return };
    let file = PathBuf::from(String::from_utf8_lossy(&told.stdout).trim());
    if let Some(folder) = file.parent().filter(|_| file.is_absolute() && file.is_file()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
