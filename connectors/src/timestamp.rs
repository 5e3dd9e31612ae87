//! Timestamps as people write them.

/// A time as ms since 1970: RFC 3339, a date, ms as a number, or `-1h` before now (units ms, s, m, h, d).
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
    parse_timestamp(text)
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
        assert_eq!(parse_time("-5m", NOW), Some(NOW - 300_000));
        for text in ["-5m", "2013-01-01T12:00:00+02:60", "2013-01-01T12:00:00+24:00", "2013-01-01T12"] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
