//! Dates of HTTP headers, as seconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns the seconds of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, or in one of the two obsolete forms that HTTP has.
pub fn seconds_of_date(text: &str) -> Option<u64> {
    let words: Vec<&str> =
        text.split([' ', ',', '-']).filter(|word| !word.is_empty() && *word != "GMT").collect();
    let [_, day, month, year, time] = match *words.as_slice() {
        // `Sun Nov  6 08:49:37 1994`
        [name, month, day, time, year] if time.contains(':') => [name, day, month, year, time],
        [name, day, month, year, time] => [name, day, month, year, time],
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
    let (day, mut year): (i64, i64) = (day.parse().ok()?, year.parse().ok()?);
    if year < 100 {
        year += if year < 70 { 2000 } else { 1900 };
    }
    let parts: Vec<u32> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = *parts.as_slice() else { return None };
    let is_valid =
        (1..=31).contains(&day) && (1970..10_000).contains(&year) && hour < 24 && minute < 60 && second <= 60;
    if !is_valid {
        return None;
    }
    // Years that begin in March, so that a leap day is the last day of one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    const DAYS_UNTIL_1970: i64 = 719_468;
    let seconds = (days - DAYS_UNTIL_1970) * 86_400 + i64::from(hour * 3600 + minute * 60 + second);
    u64::try_from(seconds).ok()
}

/// Returns the seconds of this moment.
pub fn seconds_of_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_all_forms_of_http() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(seconds_of_date(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds_of_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds_of_date("Thu, 29 Feb 2024 23:59:60 GMT"), Some(1_709_251_200));
        assert_eq!(seconds_of_date("Fri, 31 Dec 1999 00:00:00 GMT"), Some(946_598_400));
        for text in
            ["", "7", "Sun, 06 Nov 1994", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"]
        {
            assert_eq!(seconds_of_date(text), None, "{text}");
        }
    }
}
