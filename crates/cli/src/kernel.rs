//! What this kernel offers for keeping child processes in their place.

/// Abilities and their state, for people.
pub(crate) fn abilities() -> Vec<(&'static str, String)> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let modules = read("/sys/kernel/security/lsm");
    let seccomp = read("/proc/sys/kernel/seccomp/actions_avail");
    let namespaces = read("/proc/sys/user/max_user_namespaces");
    let landlock = if modules.is_empty() {
        "unknown: /sys/kernel/security is not readable".to_owned()
    } else if modules.split(',').any(|module| module.trim() == "landlock") {
        "yes".to_owned()
    } else {
        "no".to_owned()
    };
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    vec![
        ("kernel", format!("{} {}", std::env::consts::OS, release.trim())),
        ("landlock", landlock),
        ("seccomp", yes_no(seccomp.contains("errno"))),
        (
            "user namespaces",
            yes_no(namespaces.trim().parse::<u64>().is_ok_and(|most| most > 0)),
        ),
    ]
}
