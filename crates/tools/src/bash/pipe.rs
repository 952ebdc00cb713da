//! Output of a command, as it came and as text.

use std::fs::File;
use std::io::Read;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::output::Decoder;

/// Capacity of a pipe.
const BUFFER: usize = 64 * 1024;
/// Maximum number of reads, without waiting, from a command that is being ended.
const LAST_READS: usize = 16;

/// Output as it came, and as text.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Text that is complete with these bytes; a character may begin in one piece and end in the next.
    pub(super) text: String,
}

/// Output pipe of one command.
pub(super) struct Pipe {
    /// `None` once all writers have closed it.
    receiver: Option<Receiver>,
    buffer: Vec<u8>,
    decoder: Decoder,
}

impl Pipe {
    pub(super) fn new(receiver: Receiver) -> Self {
        Self {
            receiver: Some(receiver),
            buffer: vec![0; BUFFER],
            decoder: Decoder::default(),
        }
    }

    /// Returns true if more output may come.
    pub(super) fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Waits for output; it is empty at the end of the output. Cancel safe. Does not return after the end.
    pub(super) async fn read(&mut self) -> Piece {
        let Some(receiver) = &mut self.receiver else {
            return std::future::pending().await;
        };
        // A pipe that cannot be read is treated as closed.
        match receiver.read(&mut self.buffer).await {
            Ok(count) if count > 0 => self.decode(count),
            Ok(_) | Err(_) => {
                self.receiver = None;
                Piece::default()
            }
        }
    }

    /// Takes the output written so far, without waiting.
    pub(super) fn rest(&mut self) -> Piece {
        let mut rest = Piece::default();
        let receiver = self.receiver.take();
        let Some(descriptor) = receiver.and_then(|pipe| pipe.into_nonblocking_fd().ok()) else {
            return rest;
        };
        let mut file = File::from(descriptor);
        for _ in 0..LAST_READS {
            match file.read(&mut self.buffer) {
                Ok(count) if count > 0 => {
                    let piece = self.decode(count);
                    rest.bytes.extend(piece.bytes);
                    rest.text.push_str(&piece.text);
                }
                Ok(_) | Err(_) => break,
            }
        }
        rest
    }

    /// Stops listening while processes may still write. They keep running: the rest is read and discarded.
    pub(super) fn abandon(&mut self) {
        if let Some(mut receiver) = self.receiver.take() {
            tokio::spawn(async move { tokio::io::copy(&mut receiver, &mut tokio::io::sink()).await });
        }
    }

    /// Returns the text of the last bytes when no more will come.
    pub(super) fn finish(&mut self) -> Piece {
        Piece {
            bytes: Vec::new(),
            text: self.decoder.finish().to_owned(),
        }
    }

    fn decode(&mut self, count: usize) -> Piece {
        let (bytes, _) = self.buffer.split_at(count);
        Piece {
            bytes: bytes.to_vec(),
            text: self.decoder.push(bytes),
        }
    }
}
