//! The traces by which the processes of a tree can be recognized.

/// Root of a tree whose first process has ended and was collected: its number may belong to any process now.
pub(crate) const GONE: i32 = -1;

/// A tree to end.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The process that was started; it leads its own group. Or [`GONE`].
    pub(crate) root: i32,
    /// `NAME=value`, as it appears in the environment.
    pub(crate) marker: Vec<u8>,
    /// Inode of the output pipe.
    #[cfg_attr(
        not(all(target_os = "linux", not(windlass_portable))),
        allow(dead_code, reason = "only a process table shows who holds a pipe")
    )]
    pub(crate) pipe: Option<u64>,
}
