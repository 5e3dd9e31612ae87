//! Gives bytes that were changed good checksums again, so that what is behind the checks is reached, too.

use std::path::Path;

use thalweg_protocol::record::{BatchHeader, stamp_max_timestamp};

const BLOCK: usize = 4096;

pub fn mend(path: &Path, bytes: &mut Vec<u8>) {
    let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("log") => mend_batches(bytes),
        Some("snapshot") if bytes.len() >= 6 => {
            let crc = crc32c::crc32c(&bytes[6..]);
            bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        }
        _ if path.parent().is_some_and(|parent| parent.ends_with("journal")) => mend_journal(bytes),
        _ if name == "meta" => mend_meta(bytes),
        _ if ["synced-to", "cleaned-to", "aborted-sums"].contains(&name) => mend_lines(bytes),
        _ => {}
    }
}

/// Lengths stay as they are: a batch that is cut is the end.
fn mend_batches(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Ok(header) = BatchHeader::parse(rest) {
        let Some((batch, behind)) = rest.split_at_mut_checked(header.size_in_bytes()) else { return };
        stamp_max_timestamp(batch, header.max_timestamp);
        rest = behind;
    }
}

/// Each line begins with the checksum of the rest of it.
fn mend_lines(bytes: &mut Vec<u8>) {
    let mut mended = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let content = line.splitn(2, |&byte| byte == b' ').nth(1).unwrap_or(line);
        mended.extend(format!("{:08x} ", crc32c::crc32c(content)).into_bytes());
        mended.extend(content);
        mended.push(b'\n');
    }
    *bytes = mended;
}

/// The last line has the checksum of those before it.
fn mend_meta(bytes: &mut Vec<u8>) {
    const LAST: &[u8] = b"crc32c: ";
    if let Some(at) = bytes.windows(LAST.len()).rposition(|window| window == LAST) {
        let crc = crc32c::crc32c(&bytes[..at]);
        bytes.truncate(at);
        bytes.extend(format!("crc32c: {crc:08x}\n").into_bytes());
    }
}

/// Two headers, and a record at any block behind them.
fn mend_journal(bytes: &mut [u8]) {
    for at in (0..bytes.len()).step_by(BLOCK) {
        let rest = &mut bytes[at..];
        if at < 2 * BLOCK && rest.len() >= 48 {
            let crc = crc32c::crc32c(&rest[16..48]);
            rest[12..16].copy_from_slice(&crc.to_be_bytes());
        } else if rest.starts_with(b"TWJR") && rest.len() >= 32 {
            let length = u32::from_be_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
            if (8..=rest.len()).contains(&length) {
                let crc = crc32c::crc32c(&rest[8..length]);
                rest[4..8].copy_from_slice(&crc.to_be_bytes());
            }
        }
    }
}
