//! Changes inputs at random: what a fuzzer does, without its feedback, and the same every time. The tests of the log's crates
//! include this file, so that what is fuzzed is also run with each of them.

/// Numbers that matter as counts, lengths and offsets.
const TELLING: [i64; 12] =
    [0, 1, -1, -2, 0x7f, 0xff, 0x7fff, 0xffff, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];

/// Hands every seed to `check`, and then so many that were made of them, or as many as `THALWEG_MUTATIONS` says.
pub fn sweep(seeds: &[Vec<u8>], rounds: usize, check: impl Fn(&[u8])) {
    let asked = std::env::var("THALWEG_MUTATIONS").ok();
    let rounds = asked.map_or(rounds, |asked| asked.parse().expect("THALWEG_MUTATIONS is a number"));
    let mut random = Random(2013);
    let run = |input: Vec<u8>| {
        let shown = Shown(&input);
        check(&input);
        drop(shown);
    };
    for seed in seeds {
        run(seed.clone());
    }
    for _ in 0..rounds {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            random.change(&mut input, seeds);
        }
        run(input);
    }
}

/// Tells which input it was when the check of it fails.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("the input: {hex}");
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Some of `input`, which is not empty.
    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(input.len());
        let most = [4, 70, input.len()][self.below(3)];
        start..(start + 1 + self.below(most)).min(input.len())
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        if input.is_empty() {
            return input.push(self.next() as u8);
        }
        let at = self.below(input.len());
        match self.below(9) {
            0 => input[at] = self.next() as u8,
            1 => input[at] ^= 1 << self.below(8),
            2 => input[at] = TELLING[self.below(TELLING.len())] as u8,
            3 => {
                let number = TELLING[self.below(TELLING.len())].to_be_bytes();
                let width = [2, 4, 8][self.below(3)].min(input.len() - at);
                input[at..at + width].copy_from_slice(&number[8 - width..]);
            }
            4 => drop(input.drain(self.range(input))),
            5 => {
                let repeated = input[self.range(input)].to_vec();
                input.splice(at..at, repeated);
            }
            6 => input.truncate(at),
            7 => input.insert(at, self.next() as u8),
            _ => {
                let other = &seeds[self.below(seeds.len())];
                if !other.is_empty() {
                    let part = other[self.range(other)].to_vec();
                    let end = (at + part.len()).min(input.len());
                    input.splice(at..end, part);
                }
            }
        }
    }
}
