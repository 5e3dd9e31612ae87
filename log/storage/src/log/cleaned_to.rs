//! How far a log has been cleaned; see `docs/formats/compaction.md`.

use std::path::Path;

use thalweg_protocol::Offset;

use crate::environment::Environment;
use crate::error::Error;
use crate::synced_to::{checked, with_checksum};

/// The file that says so, in the log's directory.
pub(super) const CLEANED_TO_FILE: &str = "cleaned-to";
const TITLE: &str = "thalweg cleaned-to ";
const VERSION: u32 = 1;

/// How far a log has been cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CleanedTo {
    /// Below it each key has one value.
    pub(crate) to: Offset,
    /// Below it offsets may be missing between batches, and nowhere else.
    pub(crate) gaps_below: Offset,
    /// The earliest time, in ms since 1970, at which a tombstone or marker may go.
    pub(crate) next_horizon_ms: Option<i64>,
}

impl CleanedTo {
    /// What the directory of a log says.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; I/O errors.
    pub(super) fn read(directory: &Path, environment: &Environment) -> Result<Self, Error> {
        let path = directory.join(CLEANED_TO_FILE);
        let Some(bytes) = environment.read_whole(&path)? else { return Ok(Self::default()) };
        match parse(&bytes) {
            Some((VERSION, Some(cleaned))) => Ok(cleaned),
            Some((found, _)) if found > VERSION => {
                Err(Error::NewerFormat { path, found, supported: VERSION })
            }
            _ => {
                tracing::warn!(file = %path.display(), "the file is damaged; the log is cleaned from its start");
                Ok(Self { gaps_below: Offset(i64::MAX), ..Self::default() })
            }
        }
    }

    pub(super) fn encode(&self) -> String {
        let Self { to, gaps_below, next_horizon_ms } = self;
        with_checksum(&format!("{TITLE}{VERSION} {to} {gaps_below} {}", next_horizon_ms.unwrap_or(-1)))
    }
}

/// The version, and the content if that is the one that is known.
fn parse(bytes: &[u8]) -> Option<(u32, Option<CleanedTo>)> {
    let mut fields = checked(bytes)?.strip_prefix(TITLE)?.split(' ');
    let version = fields.next()?.parse().ok()?;
    let mut number = || fields.next()?.parse::<i64>().ok();
    let content = (|| {
        let (to, gaps_below, horizon) = (Offset(number()?), Offset(number()?), number()?);
        Some(CleanedTo { to, gaps_below, next_horizon_ms: (horizon >= 0).then_some(horizon) })
    })();
    Some((version, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read_as_it_is_written_and_not_otherwise() {
        let horizon = Some(1_357_084_800_000);
        let cleaned = CleanedTo { to: Offset(4711), gaps_below: Offset(9000), next_horizon_ms: horizon };
        let line = cleaned.encode();
        let docs = include_str!("../../../../docs/formats/compaction.md");
        assert!(docs.contains(&line), "{line}");
        for cleaned in [cleaned, CleanedTo::default()] {
            assert_eq!(parse(cleaned.encode().as_bytes()), Some((VERSION, Some(cleaned))));
        }
        for at in 0..line.len() {
            let mut flipped = line.clone().into_bytes();
            flipped[at] ^= 1;
            assert_eq!(parse(&flipped), None, "bit flipped in byte {at}");
            assert_eq!(parse(&line.as_bytes()[..at]), None, "cut after {at} bytes");
        }
        assert_eq!(parse(with_checksum(&format!("{TITLE}7 and more")).as_bytes()), Some((7, None)));
    }
}
