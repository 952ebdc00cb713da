//! The messages between this program, the launcher and the supervisors of its commands.
//!
//! The launcher's socket keeps message boundaries. A message is one byte, or a line of text in the launcher's
//! first reply, together with open files. A supervisor's socket is a stream of [`Report`]s in one direction
//! and of single bytes, [`TERMINATE`] and [`KILL`], in the other.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

/// Maximum number of open files in a message.
const MAX_FILES: usize = 8;
/// Maximum size of the text of a message.
pub(super) const MAX_TEXT: usize = 4096;

/// Asks a supervisor to end its processes: TERM, and KILL after two seconds.
pub(crate) const TERMINATE: u8 = b'T';
/// Asks a supervisor to end its processes at once.
pub(crate) const KILL: u8 = b'K';

/// Size of an encoded report.
pub(crate) const REPORT: usize = 5;

/// A supervisor's report about its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command has ended, with this status as the kernel encodes it. Processes that it started may run.
    Ended(i32),
    /// No process of the command is left.
    Gone,
    /// A process of the sandbox tried to reach another machine, and there is no network.
    NoNetwork,
    /// Processes are left that cannot be ended one by one: they start new ones faster.
    Stuck,
}

impl Report {
    pub(crate) fn encode(self) -> [u8; REPORT] {
        let (tag, value) = match self {
            Self::Ended(status) => (b'E', status),
            Self::Gone => (b'G', 0),
            Self::NoNetwork => (b'N', 0),
            Self::Stuck => (b'S', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn decode(bytes: [u8; REPORT]) -> Option<Self> {
        let [tag, a, b, c, d] = bytes;
        match tag {
            b'E' => Some(Self::Ended(i32::from_le_bytes([a, b, c, d]))),
            b'G' => Some(Self::Gone),
            b'N' => Some(Self::NoNetwork),
            b'S' => Some(Self::Stuck),
            _ => None,
        }
    }
}

/// Sends a message with open files.
pub(crate) fn send(socket: impl AsFd, text: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives a message. Returns `None` if the other end is closed.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut text = vec![0; MAX_TEXT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut text)], &mut control, flags) {
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    if received.bytes == 0 && files.is_empty() {
        return Ok(None);
    }
    text.truncate(received.bytes);
    Ok(Some((text, files)))
}

/// Puts bytes into a file in memory, to be passed on.
pub(crate) fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(rustix::fs::memfd_create("windlass", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Reads a file that was passed on, from its beginning.
pub(crate) fn read_whole(file: &OwnedFd) -> io::Result<Vec<u8>> {
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    let mut bytes = vec![0; usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or_default()];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(file, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
