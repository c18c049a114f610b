//! Units of dates and durations.

/// Unit of a `numpy.datetime64` or `numpy.timedelta64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Years, `Y`.
    Year,
    /// Months, `M`.
    Month,
    /// Weeks, `W`.
    Week,
    /// Days, `D`.
    Day,
    /// Hours, `h`.
    Hour,
    /// Minutes, `m`.
    Minute,
    /// Seconds, `s`.
    Second,
    /// Milliseconds, `ms`.
    Millisecond,
    /// Microseconds, `us`.
    Microsecond,
    /// Nanoseconds, `ns`.
    Nanosecond,
    /// Picoseconds, `ps`.
    Picosecond,
    /// Femtoseconds, `fs`.
    Femtosecond,
    /// Attoseconds, `as`.
    Attosecond,
    /// No unit, `generic`.
    Generic,
}

impl TimeUnit {
    const CODES: [(TimeUnit, &'static str); 14] = [
        (TimeUnit::Year, "Y"),
        (TimeUnit::Month, "M"),
        (TimeUnit::Week, "W"),
        (TimeUnit::Day, "D"),
        (TimeUnit::Hour, "h"),
        (TimeUnit::Minute, "m"),
        (TimeUnit::Second, "s"),
        (TimeUnit::Millisecond, "ms"),
        (TimeUnit::Microsecond, "us"),
        (TimeUnit::Nanosecond, "ns"),
        (TimeUnit::Picosecond, "ps"),
        (TimeUnit::Femtosecond, "fs"),
        (TimeUnit::Attosecond, "as"),
        (TimeUnit::Generic, "generic"),
    ];

    /// Returns NumPy's code of the unit.
    #[must_use]
    pub fn code(self) -> &'static str {
        Self::CODES.iter().find(|(unit, _)| *unit == self).map_or("generic", |(_, code)| code)
    }

    /// Returns the unit with NumPy's code `code`; like NumPy, accepts `μs` for `us`.
    #[must_use]
    pub fn from_code(code: &str) -> Option<TimeUnit> {
        let code = if code == "μs" { "us" } else { code };
        Self::CODES.iter().find(|(_, known)| *known == code).map(|(unit, _)| *unit)
    }
}
