//! Reads what a command writes, shows it live and keeps the part that is worth keeping.

use std::fs::File;
use std::io::Read;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use windlass_core::tool::Progress;

use super::live::Live;
use super::output::{Clip, Decoder};

const BUFFER: usize = 16 * 1024;
/// What is still read, without waiting, from a command that is being ended.
const LAST_READS: usize = 64;

/// The output of one command.
pub(super) struct Capture {
    /// `None` when all writers have closed it.
    pipe: Option<Receiver>,
    buffer: Vec<u8>,
    decoder: Decoder,
    clip: Clip,
    live: Live,
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Output, or the end of it.
    Read,
    /// Only time passed.
    Shown,
}

impl Capture {
    pub(super) fn new(pipe: Receiver, limit: usize, progress: Progress) -> Self {
        Self {
            pipe: Some(pipe),
            buffer: vec![0; BUFFER],
            decoder: Decoder::default(),
            clip: Clip::new(limit),
            live: Live::new(progress),
        }
    }

    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for output, or for the time to show what has come. Loses nothing when it is dropped. Does not return
    /// after the end of the output.
    pub(super) async fn step(&mut self) -> Step {
        let Some(pipe) = &mut self.pipe else {
            return std::future::pending().await;
        };
        let count = match self.live.deadline() {
            None => pipe.read(&mut self.buffer).await,
            Some(deadline) => tokio::select! {
                biased;
                count = pipe.read(&mut self.buffer) => count,
                () = tokio::time::sleep_until(deadline.into()) => {
                    self.live.flush();
                    return Step::Shown;
                }
            },
        };
        // A pipe that cannot be read has ended as far as we are concerned.
        match count {
            Ok(count) if count > 0 => self.take(count),
            Ok(_) | Err(_) => self.pipe = None,
        }
        Step::Read
    }

    /// Takes what has been written, without waiting.
    pub(super) fn take_rest(&mut self) {
        let Some(descriptor) = self.pipe.take().and_then(|pipe| pipe.into_nonblocking_fd().ok()) else {
            return;
        };
        let mut file = File::from(descriptor);
        for _ in 0..LAST_READS {
            match file.read(&mut self.buffer) {
                Ok(count) if count > 0 => self.take(count),
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Stops listening while somebody may still write. Whoever does keeps running: the rest is read and dropped.
    pub(super) fn abandon(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            tokio::spawn(async move { tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await });
        }
    }

    /// Shows the last of it and returns the text, and whether some of it is missing.
    pub(super) fn finish(mut self) -> (String, bool) {
        let last = self.decoder.finish();
        self.clip.push(last);
        self.live.push(last);
        self.live.flush();
        (self.clip.text(), self.clip.is_cut())
    }

    fn take(&mut self, count: usize) {
        let (bytes, _) = self.buffer.split_at(count);
        let text = self.decoder.push(bytes);
        self.clip.push(&text);
        self.live.push(&text);
    }
}
