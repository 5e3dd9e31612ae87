//! Timestamps as people write them.

/// A time as ms since 1970: RFC 3339, a date, ms as a number, or `-1h` before now (units ms, s, m, h, d). Not a number that
/// is rather a year, or a date without its dashes.
pub fn parse_time(text: &str, now_ms: i64) -> Option<i64> {
    if let Some(back) = text.strip_prefix('-') {
        let unit_at = back.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = back[..unit_at].parse().ok()?;
        let unit = match &back[unit_at..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        return now_ms.checked_sub(count.checked_mul(unit)?);
    }
    if looks_like_date(text) {
        return None;
    }
    parse_timestamp(text)
}

/// Whether a number is a year from 1900 to 2199, or such a year with a month or a date behind it, as `2013` or `20130101`.
pub fn looks_like_date(text: &str) -> bool {
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<u32>().ok());
    let is_within = |from, to, range: std::ops::RangeInclusive<u32>| {
        text.len() < to || number(from, to).is_some_and(|number| range.contains(&number))
    };
    matches!(text.len(), 4 | 6 | 8)
        && text.bytes().all(|c| c.is_ascii_digit())
        && is_within(0, 4, 1900..=2199)
        && is_within(4, 6, 1..=12)
        && is_within(6, 8, 1..=31)
}

/// A time as ms since 1970 that depends on nothing else: RFC 3339, a date, or ms as a number.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) {
        return text.parse().ok();
    }
    parse_rfc3339(text)
}

/// RFC 3339 with a `Z` or numeric offset, or without one (then UTC); the time of day may be missing.
fn parse_rfc3339(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let part = text.get(from..to)?;
        part.bytes().all(|c| c.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    };
    let is = |at: usize, wanted: &[u8]| text.as_bytes().get(at).is_some_and(|c| wanted.contains(c));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !is(4, b"-") || !is(7, b"-") || !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let midnight = days_from_civil(year, month, day) * 86_400_000;
    if text.len() == 10 {
        return Some(midnight);
    }
    let (hour, minute) = (number(11, 13)?, number(14, 16)?);
    if !is(10, b"Tt ") || !is(13, b":") || hour > 23 || minute > 59 {
        return None;
    }
    let mut at = 16;
    let mut ms = (hour * 60 + minute) * 60_000;
    if is(at, b":") {
        let second = number(17, 19)?;
        if second > 60 {
            return None;
        }
        ms += second * 1_000;
        at = 19;
        if is(at, b".") {
            let fraction: &str = &text[20..];
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let millis = format!("{:0<3}", &fraction[..digits.min(3)]);
            ms += millis.parse::<i64>().ok()?;
            at = 20 + digits;
        }
    }
    let zone = match &text.get(at..)? {
        z if z.is_empty() || *z == "Z" || *z == "z" => 0,
        _ if text.len() == at + 6 && is(at, b"+-") && is(at + 3, b":") => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = hours * 60 + minutes;
            if is(at, b"-") { -minutes } else { minutes }
        }
        _ => return None,
    };
    Some(midnight + ms - zone * 60_000)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar, counted in years that begin in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// A time in ms since 1970 as RFC 3339 in UTC, with ms where there are some: `2013-01-01T10:00:00Z`.
pub fn format_time(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    let fraction = match of_day % 1_000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn times_are_utc_milliseconds() {
        let cases = [
            ("1970-01-01", 0),
            ("2013-01-01T10:00:00Z", 1_357_034_400_000),
            ("2013-01-01T10:00:00.123Z", 1_357_034_400_123),
            ("2013-01-01T12:00:00+02:00", 1_357_034_400_000),
            ("2000-02-29T00:00", 951_782_400_000),
            ("1969-12-31T23:59:59Z", -1_000),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_time(text, NOW), Some(ms), "{text}");
            assert_eq!(parse_timestamp(text), Some(ms), "{text}");
        }
        for text in ["2013", "201312", "20131231"] {
            assert_eq!(parse_time(text, NOW), None, "{text}");
        }
        for (text, ms) in
            [("1000", 1000), ("201313", 201_313), ("20131232", 20_131_232), ("2200", 2200), ("0", 0)]
        {
            assert_eq!(parse_time(text, NOW), Some(ms), "{text}");
        }
        for (text, ms) in cases {
            assert_eq!(parse_timestamp(&format_time(ms)), Some(ms), "{text}");
        }
        assert_eq!(format_time(1_357_034_400_123), "2013-01-01T10:00:00.123Z");
        assert_eq!(format_time(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(parse_time("-5m", NOW), Some(NOW - 300_000));
        for text in ["-5m", "2013-01-01T12:00:00+02:60", "2013-01-01T12:00:00+24:00", "2013-01-01T12"] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
