//! The sandbox helper on its own, for tests and measurements: `sandbox __sandbox <policy> -- program args…`.

use windlass_sandbox as sandbox;

fn main() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == sandbox::HELPER) {
        sandbox::enter(args);
    }
}
