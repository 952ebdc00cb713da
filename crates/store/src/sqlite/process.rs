//! Processes of this machine that own sessions. The backend is chosen as in the `sandbox` crate.

#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable;

#[cfg(all(target_os = "linux", not(windlass_portable)))]
use self::linux as backend;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
use self::portable as backend;

/// A process that runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// Start time, which another process with the same number does not have. `None` if the system does not
    /// tell.
    pub(super) started: Option<String>,
}

impl Process {
    /// Returns the process with this number, or `None` if it can write nothing any more.
    pub(super) fn find(pid: i32) -> Option<Self> {
        if pid <= 0 { None } else { backend::find(pid) }
    }
}

/// Returns what tells this machine, since its last start, and the processes seen in it from others of the same name; empty
/// if the system does not tell.
pub(super) fn machine() -> Vec<u8> {
    backend::machine()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SES-2, LIB-2: this process runs, and an ended one does not, with either backend.
    #[test]
    fn processes_run_until_they_end() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(Process::find(own).is_some());
        assert_eq!(Process::find(own), Process::find(own));
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let running = Process::find(pid).expect("the child runs");
        let tells_time = cfg!(all(target_os = "linux", not(windlass_portable)));
        assert_eq!(running.started.is_some(), tells_time);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Process::find(pid), None);
        assert_eq!(Process::find(0), None);
        assert_eq!(Process::find(-1), None);
    }
}
