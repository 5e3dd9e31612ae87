//! Frames that are not what they should be: each kind of fault by itself, then all frames cut short, changed at
//! random and made up.

use bytes::Bytes;
use thalweg_protocol::DecodeError;
use thalweg_protocol::bounds::DecodeBudget;
use thalweg_protocol::frame::{self, RequestError};

use super::oracle::{Pair, pairs, request_frame, response_frame};
use super::random::{Entropy, Sample};
use crate::allocations::peak_of;

/// Small enough that the arrays of a hostile frame run into it.
const TIGHT: DecodeBudget = DecodeBudget { base_bytes: 1 << 10, per_frame_byte: 2 };

/// The frame's first reference count, and the client id's and topics' names in errors.
const SLACK_BYTES: usize = 256;

fn decode(frame: &[u8]) -> Result<frame::RequestHeader, DecodeError> {
    match frame::decode_request(Bytes::copy_from_slice(frame), TIGHT) {
        Ok((header, _)) => Ok(header),
        Err(RequestError::Body { error, .. } | RequestError::Header(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

/// Checks what is wrong with a body of Metadata, whose version 1 is an array of strings and whose version 12 has
/// compact lengths, tagged fields and nullable names.
fn check(version: u8, body: &[u8], expected: Result<(), DecodeError>) {
    let mut frame = vec![0, 3, 0, version, 0, 0, 0, 1, 0xff, 0xff];
    if version >= 9 {
        frame.push(0);
    }
    frame.extend(body);
    assert_eq!(decode(&frame).map(|_| ()), expected, "{body:?}");
}

#[test]
fn each_fault_has_its_own_error() {
    check(1, b"\0\0\0\x01\0\x01a", Ok(()));
    check(1, b"\0\0\0", Err(DecodeError::Truncated { at: 10, needed: 4, remaining: 3 }));
    check(1, b"\0\0\0\x01\0\x02a", Err(DecodeError::Truncated { at: 16, needed: 2, remaining: 1 }));
    check(1, b"\xff\xff\xff\xfe", Err(DecodeError::NegativeLength { at: 10, length: -2 }));
    check(1, b"\0\0\0\x01\xff\xf0", Err(DecodeError::NegativeLength { at: 14, length: -16 }));
    check(
        1,
        b"\x7f\xff\xff\xff\0\0",
        Err(DecodeError::CountTooLarge { at: 14, count: 0x7fff_ffff, remaining: 2 }),
    );
    check(1, b"\0\0\0\x01\xff\xff", Err(DecodeError::Null { at: 14 }));
    check(0, b"\xff\xff\xff\xff", Err(DecodeError::Null { at: 10 }));
    check(1, b"\0\0\0\x01\0\x02\xc3\x28", Err(DecodeError::NotUtf8 { at: 16 }));
    // What follows the last field is passed over; the second is what librdkafka sends to ask for all topics.
    check(1, b"\0\0\0\0!", Ok(()));
    check(12, b"\0\0\0\0\x01\0\0", Ok(()));

    check(12, b"\0\x01\0\0", Ok(()));
    check(12, b"\x80\0\x01\0\0", Err(DecodeError::Varint { at: 11 }));
    check(12, b"\xff\xff\xff\xff\x1f\x01\0\0", Err(DecodeError::Varint { at: 11 }));
    check(12, b"\xff\xff\xff\xff\xff\x0f\x01\0\0", Err(DecodeError::Varint { at: 11 }));
    let count = DecodeError::CountTooLarge { at: 16, count: u32::MAX as usize - 1, remaining: 3 };
    check(12, b"\xff\xff\xff\xff\x0f\x01\0\0", Err(count));
    let topic = |name: &[u8]| [b"\x02", &[0; 16][..], name, b"\0\x01\0\0"].concat();
    check(12, &topic(b"\0"), Ok(()));
    check(12, &topic(b"\x02a"), Ok(()));
    check(12, &topic(b"\x81\x80\x02"), Err(DecodeError::StringTooLong { at: 31, length: 32_768 }));

    check(12, b"\0\x01\0\x02\x05\x01!\x06\0", Ok(()));
    check(12, b"\0\x01\0\x02\x05\x01!\x05\0", Err(DecodeError::TagOrder { at: 18, tag: 5, previous: 5 }));
    check(12, b"\0\x01\0\x02\x05\x01!\x03\0", Err(DecodeError::TagOrder { at: 18, tag: 3, previous: 5 }));
    check(12, b"\0\x01\0\x01\x05\x02!", Err(DecodeError::Truncated { at: 17, needed: 2, remaining: 1 }));
}

/// A known tagged field must be as long as it says: FetchRequest has the cluster's id under tag 0.
#[test]
fn tagged_fields_keep_to_their_length() {
    let mut frame = b"\0\x01\0\x0c\0\0\0\x01\xff\xff\0".to_vec();
    frame.extend([0; 25]);
    frame.extend(b"\x01\x01\x01");
    let with = |tags: &[u8]| decode(&[&frame, tags].concat()).map(|_| ());
    let at = frame.len();
    assert_eq!(with(b"\0"), Ok(()));
    assert_eq!(with(b"\x01\0\x02\x02c"), Ok(()));
    assert_eq!(with(b"\x01\0\x03\x02c!"), Err(DecodeError::TagLength { at: at + 5, tag: 0, remaining: 1 }));
    assert_eq!(
        with(b"\x01\0\x02\x03cd"),
        Err(DecodeError::Truncated { at: at + 4, needed: 2, remaining: 1 })
    );
}

/// The cheapest element on the wire, an empty string of one byte, takes 32 in memory.
#[test]
fn small_elements_run_into_the_budget() {
    let count = 20_000u32;
    let mut frame = b"\0\x0a\0\x04\0\0\0\x01\xff\xff\0\0".to_vec();
    frame.extend([(count + 1) as u8 | 0x80, (((count + 1) >> 7) as u8) | 0x80, ((count + 1) >> 14) as u8]);
    frame.extend(vec![1; count as usize]);
    frame.push(0);
    let frame = Bytes::from(frame);
    let tight = || frame::decode_request(frame.clone(), TIGHT).unwrap_err();
    let (error, peak) = peak_of(tight);
    let RequestError::Body { error: DecodeError::OverBudget { at: 15, needed, budget }, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((needed, budget), (20_000 * 32, 1024 + 2 * frame.len()));
    assert!(peak <= SLACK_BYTES, "{peak}");
    frame::decode_request(frame.clone(), DecodeBudget::REQUEST).unwrap();
}

/// Random frames of every API and version with the function that decodes them.
fn frames(seed: u64, per_version: usize, mut visit: impl FnMut(&Pair, i16, bool, Bytes, &mut fastrand::Rng)) {
    let mut random = fastrand::Rng::with_seed(seed);
    for pair in &pairs() {
        for version in pair.api.versions() {
            for _ in 0..per_version {
                let entropy: Vec<u8> = (0..random.usize(..600)).map(|_| random.u8(..)).collect();
                let mut entropy = Entropy(&entropy);
                let request = Sample::new(&pair.request, version, &mut entropy).bytes();
                visit(pair, version, true, request_frame(pair, version, &request), &mut random);
                let response = Sample::new(&pair.response, version, &mut entropy).bytes();
                visit(pair, version, false, response_frame(pair, version, &response), &mut random);
            }
        }
    }
}

/// Decodes within `TIGHT` and checks what it took; what can be decoded must survive another round.
fn decode_bounded(pair: &Pair, version: i16, is_request: bool, frame: Bytes) -> bool {
    let limit = TIGHT.bytes(frame.len()) + SLACK_BYTES;
    if is_request {
        let (result, peak) = peak_of(|| frame::decode_request(frame.clone(), TIGHT));
        assert!(peak <= limit, "{}: {peak} bytes for a frame of {}", pair.api, frame.len());
        let Ok((header, request)) = result else { return false };
        let again =
            frame::encode_request(&request, header.api_version, 1, header.client_id.as_deref()).unwrap();
        let (_, decoded) =
            frame::decode_request(again.into_bytes().unwrap().slice(4..), DecodeBudget::REQUEST).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{request:?}"));
    } else {
        let (result, peak) = peak_of(|| frame::decode_response(pair.api, version, frame.clone(), TIGHT));
        assert!(peak <= limit, "{}: {peak} bytes for a frame of {}", pair.api, frame.len());
        let Ok((id, response)) = result else { return false };
        let again = frame::encode_response(&response, version, id).unwrap();
        let bytes = again.into_bytes().unwrap().slice(4..);
        let (_, decoded) = frame::decode_response(pair.api, version, bytes, DecodeBudget::RESPONSE).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("{response:?}"));
    }
    true
}

#[test]
fn frames_cut_short_are_refused_at_every_byte() {
    frames(1, 1, |pair, version, is_request, frame, _| {
        for end in 0..frame.len() {
            let decoded = decode_bounded(pair, version, is_request, frame.slice(..end));
            assert!(!decoded, "{} {version}: {end} of {} bytes were enough", pair.api, frame.len());
        }
    });
}

/// Changes, repeats or drops some bytes, preferring values that matter as counts and varints.
fn mutate(frame: &[u8], random: &mut fastrand::Rng) -> Bytes {
    let mut frame = frame.to_vec();
    for _ in 0..random.usize(1..4) {
        // The API and the version stay, so that the body is reached.
        let at = random.usize(4..frame.len().max(5));
        match random.u8(..6) {
            0 if at < frame.len() => frame[at] = random.u8(..),
            1 if at < frame.len() => frame[at] = *random.choice(&[0x00, 0x01, 0x7f, 0x80, 0xff]).unwrap(),
            2 if at + 4 <= frame.len() => {
                let count = *random.choice(&[i32::MAX, -1, -2, 0x0100_0000, 0xffff]).unwrap();
                frame[at..at + 4].copy_from_slice(&count.to_be_bytes());
            }
            3 if at < frame.len() => drop(frame.remove(at)),
            4 => frame.insert(at.min(frame.len()), random.u8(..)),
            _ if at < frame.len() => frame[at] ^= 1 << random.u32(..8),
            _ => {}
        }
    }
    frame.into()
}

#[test]
fn frames_changed_at_random_neither_panic_nor_allocate_beyond_the_budget() {
    let (mut taken, mut all) = (0, 0);
    frames(2, 20, |pair, version, is_request, frame, random| {
        for _ in 0..10 {
            all += 1;
            taken += usize::from(decode_bounded(pair, version, is_request, mutate(&frame, random)));
        }
    });
    assert!(all > 100_000 && taken > all / 10 && taken < all, "{taken} of {all} were taken");
}

#[test]
fn noise_after_a_header_neither_panics_nor_allocates_beyond_the_budget() {
    let mut random = fastrand::Rng::with_seed(3);
    for pair in &pairs() {
        for version in pair.api.versions() {
            for _ in 0..50 {
                let noise: Vec<u8> =
                    (0..random.usize(..200)).map(|_| random.u8(..) >> random.u8(..8)).collect();
                decode_bounded(pair, version, true, request_frame(pair, version, &noise));
                decode_bounded(pair, version, false, response_frame(pair, version, &noise));
            }
        }
    }
}
