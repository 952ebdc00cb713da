//! The arithmetic of a server's lease.

use std::time::Duration;

/// Lease of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Time for which a heartbeat renews the lease, on the clock of the store.
    pub lease: Duration,
}

impl Default for Term {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(6),
        }
    }
}

impl Term {
    /// Returns the time between two heartbeats.
    pub fn beat(self) -> Duration {
        self.lease / 4
    }

    /// Returns the server's own deadline after a heartbeat that was sent at a time of its own clock. The store counts from
    /// when it received the heartbeat, so this deadline comes first, whatever the clocks show.
    pub fn deadline(self, sent: Duration) -> Duration {
        sent + self.lease - self.lease / 8
    }

    /// Returns the time at which the warden ends the processes of a server that did not do so at its own deadline. It lies
    /// before the end of the lease in the store as well.
    pub fn warden_deadline(self, sent: Duration) -> Duration {
        sent + self.lease - self.lease / 16
    }
}

/// Change of a server's standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The lease holds.
    Holds,
    /// The deadline has passed: the server acts as if it had lost everything.
    Lost,
}

/// The lease as its server sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnLease {
    term: Term,
    deadline: Duration,
    standing: Standing,
}

impl OwnLease {
    /// A lease that was never granted.
    pub(crate) fn new(term: Term) -> Self {
        Self {
            term,
            deadline: Duration::ZERO,
            standing: Standing::Lost,
        }
    }

    /// Notes a heartbeat that succeeded. Returns true if the lease was lost before. An answer that comes after the deadline
    /// it grants changes nothing.
    pub(crate) fn beaten(&mut self, sent: Duration, now: Duration) -> bool {
        let deadline = self.term.deadline(sent);
        if deadline <= now {
            return false;
        }
        self.deadline = self.deadline.max(deadline);
        std::mem::replace(&mut self.standing, Standing::Holds) == Standing::Lost
    }

    /// Returns true once, when the deadline has passed.
    pub(crate) fn expires(&mut self, now: Duration) -> bool {
        let is_over = self.standing == Standing::Holds && now >= self.deadline;
        if is_over {
            self.standing = Standing::Lost;
        }
        is_over
    }

    /// Returns true if the server may act.
    pub(crate) fn holds(&self, now: Duration) -> bool {
        self.standing == Standing::Holds && now < self.deadline
    }

    /// Returns the time left.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        self.deadline.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// DIST-3: the server's own deadline counts from when the heartbeat was sent; that of its warden comes next, and both lie
    /// before the end of the lease in the store, which counts from when the heartbeat arrived.
    #[test]
    fn the_own_deadline_comes_first() {
        let term = Term::default();
        assert_eq!(term.beat(), at(1_500));
        assert_eq!(term.deadline(at(100)), at(100 + 5_250));
        for delay in [0, 10, 5_000] {
            let (own, warden) = (term.deadline(at(100)), term.warden_deadline(at(100)));
            assert!(own < warden && warden < at(100 + delay) + term.lease);
        }
    }

    /// DIST-3: past its deadline a server has lost everything, once; a heartbeat brings it back, unless the answer is so old
    /// that what it grants is over.
    #[test]
    fn a_lease_is_lost_once_and_comes_back() {
        let mut lease = OwnLease::new(Term::default());
        assert!(!lease.holds(at(0)));
        assert!(lease.beaten(at(0), at(20)), "the first heartbeat");
        assert!(lease.holds(at(5_249)));
        assert!(!lease.expires(at(5_249)));
        assert!(!lease.holds(at(5_250)), "before anybody notices");
        assert!(lease.expires(at(5_250)));
        assert!(!lease.expires(at(5_300)), "only once");
        assert!(!lease.beaten(at(10), at(5_400)), "an answer that took too long");
        assert!(!lease.holds(at(5_400)));
        assert!(lease.beaten(at(5_390), at(5_400)));
        assert!(lease.holds(at(5_400)));
        assert!(!lease.beaten(at(6_000), at(6_010)), "it was not lost");
        assert_eq!(lease.left(at(6_010)), at(6_000 + 5_250 - 6_010));
    }
}
