//! Pseudo-random numbers, the same for the same seed on every machine.

/// SplitMix64.
pub(super) struct Random(u64);

const FIRST: [&str; 12] = [
    "amber", "brisk", "coral", "dusky", "ember", "frost", "grand", "hazel", "ivory", "jolly", "lunar",
    "misty",
];
const SECOND: [&str; 12] = [
    "anchor", "beacon", "cargo", "dock", "engine", "ferry", "galley", "harbor", "inlet", "jetty", "keel",
    "lantern",
];

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but excluding `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    pub(super) fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// Picks an item of a list, which must not be empty.
    pub(super) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let place = self.below(list.len());
        // The index is within the list.
        list.get(place).unwrap_or(&list[0])
    }

    /// Generates the name of a part of the fictional service.
    pub(super) fn name(&mut self) -> String {
        let (first, second) = (*self.pick(&FIRST), *self.pick(&SECOND));
        format!("{first}-{second}-{}", self.between(10, 999))
    }
}
