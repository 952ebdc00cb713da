//! Process trees by process group, the only handle on them that POSIX has.

use std::io;

use tokio::process::Child;

use crate::process::{Group, Search, Target};

/// Prepares the search for the processes of a tree.
pub(crate) fn search<'a>(target: &'a Target, child: Option<&'a mut Child>) -> Box<dyn Search + 'a> {
    Box::new(Group::new(target.root, child))
}

/// Does nothing: orphans go to the system.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Does nothing: no orphans were adopted.
pub(crate) fn collect() {}
