//! Requests as they came over the wire, each stored without the prefix it shares with the one before.
//!
//! A thousand requests that each repeat the history are hundreds of megabytes; the new part of each is a few
//! hundred bytes. The raw client assembles the same bytes again in one buffer, which is the least possible
//! work.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// Request line and headers, with the blank line.
    pub(crate) head: Vec<u8>,
    /// Number of body bytes shared with the previous request.
    pub(crate) shared: usize,
    /// The rest of the body.
    pub(crate) fresh: Vec<u8>,
}

impl Request {
    /// Turns `body`, the body of the previous request, into the body of this one.
    pub(crate) fn restore(&self, body: &mut Vec<u8>) {
        body.truncate(self.shared);
        body.extend_from_slice(&self.fresh);
    }
}

/// Writes requests to a file.
pub(crate) struct Recorder<W> {
    out: W,
    last: Vec<u8>,
}

impl<W: Write> Recorder<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            last: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, head: &[u8], body: &[u8]) -> Result<()> {
        let shared = shared(&self.last, body);
        let fresh = body.get(shared..).unwrap_or_default();
        for length in [head.len(), shared, fresh.len()] {
            self.out.write_all(&(length as u64).to_le_bytes())?;
        }
        self.out.write_all(head)?;
        self.out.write_all(fresh)?;
        self.out.flush()?;
        self.last.clear();
        self.last.extend_from_slice(body);
        Ok(())
    }
}

/// Reads all requests.
pub(crate) fn read(mut from: &[u8]) -> Result<Vec<Request>> {
    let mut requests = Vec::new();
    while !from.is_empty() {
        let [head, shared, fresh] = [length(&mut from)?, length(&mut from)?, length(&mut from)?];
        if from.len() < head + fresh {
            bail!("the record of requests is truncated");
        }
        let (head, rest) = from.split_at(head);
        let (fresh, rest) = rest.split_at(fresh);
        requests.push(Request {
            head: head.to_vec(),
            shared,
            fresh: fresh.to_vec(),
        });
        from = rest;
    }
    Ok(requests)
}

/// Returns the whole bodies, in order.
pub(crate) fn bodies(requests: &[Request]) -> Vec<Vec<u8>> {
    let mut body = Vec::new();
    let restore = |request: &Request| {
        request.restore(&mut body);
        body.clone()
    };
    requests.iter().map(restore).collect()
}

/// Returns the length of the common prefix of two texts.
pub(crate) fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

fn length(from: &mut &[u8]) -> Result<usize> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)
        .context("the record of requests is truncated")?;
    Ok(usize::try_from(u64::from_le_bytes(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_comes_back() {
        let sent: [&[u8]; 3] = [b"{[1]}", b"{[1,2]}", b"{[1,2,3]}"];
        let mut file = Vec::new();
        let mut recorder = Recorder::new(&mut file);
        for body in sent {
            recorder.record(b"POST\r\n\r\n", body).unwrap();
        }
        let requests = read(&file).unwrap();
        assert_eq!(bodies(&requests), sent);
        assert_eq!(requests[2].fresh, b",3]}");
        assert!(read(&file[..file.len() - 1]).is_err());
    }
}
