//! What a commit writes beside the changes: how far the task was, so that state and log can be compared.

/// The state of a task at a commit, less the stores themselves. It is written twice: into the metadata of
/// the input offsets that are committed, which makes it part of the transaction, and into the store, in the
/// same write as the changes. Layout, numbers big-endian:
///
/// ```text
/// version u8 (1) · sequence u64
/// changelogs u16 × { name length u16 · name · next offset i64 }
/// inputs u16 × { topic length u16 · topic · next offset i64 }
/// program length u32 · program
/// ```
///
/// In the offset metadata, which must be text, it stands in hexadecimal, without the inputs: the offset that
/// is committed is theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Counts the commits of the task, from 1.
    pub(crate) sequence: u64,
    /// Per store, the offset after the last record written to its changelog.
    pub(crate) changelogs: Vec<(String, i64)>,
    /// Per input topic, the offset of the next record to process.
    pub(crate) inputs: Vec<(String, i64)>,
    /// What the program saved.
    pub(crate) program: Vec<u8>,
}

const VERSION: u8 = 1;

impl Checkpoint {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        for list in [&self.changelogs, &self.inputs] {
            out.extend_from_slice(&(list.len() as u16).to_be_bytes());
            for (name, offset) in list {
                out.extend_from_slice(&(name.len() as u16).to_be_bytes());
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(&offset.to_be_bytes());
            }
        }
        out.extend_from_slice(&(self.program.len() as u32).to_be_bytes());
        out.extend_from_slice(&self.program);
    }

    /// Reads what [`encode`](Self::encode) writes.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Self, String> {
        let rest = &mut bytes;
        let [version] = take(rest)?;
        if version != VERSION {
            return Err(format!("version {version} is unknown; this program writes version {VERSION}"));
        }
        let sequence = u64::from_be_bytes(take(rest)?);
        let changelogs = take_offsets(rest)?;
        let inputs = take_offsets(rest)?;
        let length = u32::from_be_bytes(take(rest)?) as usize;
        let program = take_bytes(rest, length)?.to_vec();
        if !rest.is_empty() {
            return Err(format!("{} bytes are left over", rest.len()));
        }
        Ok(Self { sequence, changelogs, inputs, program })
    }

    /// The text that goes into the metadata of the committed offsets.
    pub(crate) fn to_metadata(&self) -> String {
        let mut bytes = Vec::new();
        Self { inputs: Vec::new(), ..self.clone() }.encode(&mut bytes);
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            text.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[digit as usize])));
        }
        text
    }

    /// Reads what [`to_metadata`](Self::to_metadata) writes; empty text is a task that never committed here.
    pub(crate) fn from_metadata(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let digits: Option<Vec<u8>> =
            text.bytes().map(|c| DIGITS.iter().position(|&d| d == c).map(|at| at as u8)).collect();
        let digits = digits.ok_or("it is not in hexadecimal")?;
        let (pairs, odd) = digits.as_chunks::<2>();
        if !odd.is_empty() {
            return Err("it has an odd number of digits".into());
        }
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Self::decode(&bytes)
    }

    /// The offset after the last record written to the changelog of `store`; 0 when there is none.
    pub(crate) fn changelog(&self, store: &str) -> i64 {
        self.changelogs.iter().find(|(name, _)| name == store).map_or(0, |&(_, offset)| offset)
    }

    /// Sets what [`changelog`](Self::changelog) returns.
    pub(crate) fn set_changelog(&mut self, store: &str, offset: i64) {
        match self.changelogs.iter_mut().find(|(name, _)| name == store) {
            Some(entry) => entry.1 = offset,
            None => self.changelogs.push((store.to_owned(), offset)),
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or("it ends too early")?;
    *rest = after;
    Ok(*taken)
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, after) = rest.split_at_checked(length).ok_or("it ends too early")?;
    *rest = after;
    Ok(taken)
}

fn take_offsets(rest: &mut &[u8]) -> Result<Vec<(String, i64)>, String> {
    let count = u16::from_be_bytes(take(rest)?);
    let mut offsets = Vec::new();
    for _ in 0..count {
        let length = u16::from_be_bytes(take(rest)?) as usize;
        let name = str::from_utf8(take_bytes(rest, length)?).map_err(|_| "a name is not UTF-8")?;
        offsets.push((name.to_owned(), i64::from_be_bytes(take(rest)?)));
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checkpoint {
        Checkpoint {
            sequence: 7,
            changelogs: vec![("counts".into(), 100), ("windows".into(), 9)],
            inputs: vec![("flights".into(), 42)],
            program: vec![1, 2, 3],
        }
    }

    #[test]
    fn is_read_as_it_is_written() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(Checkpoint::decode(&bytes), Ok(sample()));
        let metadata = sample().to_metadata();
        let expected = Checkpoint { inputs: vec![], ..sample() };
        assert_eq!(Checkpoint::from_metadata(&metadata), Ok(expected));
        assert_eq!(Checkpoint::from_metadata(""), Ok(Checkpoint::default()));
        assert_eq!((sample().changelog("windows"), sample().changelog("new")), (9, 0));
    }

    #[test]
    fn refuses_anything_else() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Checkpoint::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        bytes.push(0);
        assert!(Checkpoint::decode(&bytes).is_err());
        bytes[0] = 9;
        assert!(Checkpoint::decode(&bytes).is_err());
        for text in ["0", "zz", "committed by hand"] {
            assert!(Checkpoint::from_metadata(text).is_err(), "{text}");
        }
    }
}
