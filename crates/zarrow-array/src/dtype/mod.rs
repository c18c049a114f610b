//! In-memory forms of Zarr data types, always native-endian.
//!
//! [`DataType`] is the type of one element. The endianness of stored bytes is a property of the codec that decodes
//! them, not of the type.

mod number_names;
mod pep3118;
mod structure;
mod time_unit;

pub use number_names::{Number, NumberNames};
pub use structure::{Field, Struct};
pub use time_unit::TimeUnit;

use std::fmt;

/// Type of one element of an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// One number of a fixed size.
    Number(Number),
    /// A point in time, `scale` × `unit` since 1970 as an `i64`; NaT is `i64::MIN`.
    DateTime64 {
        /// The unit of time.
        unit: TimeUnit,
        /// Number of units per step.
        scale: u32,
    },
    /// A duration in `scale` × `unit` as an `i64`; NaT is `i64::MIN`.
    TimeDelta64 {
        /// The unit of time.
        unit: TimeUnit,
        /// Number of units per step.
        scale: u32,
    },
    /// Text of at most `length` code points, UTF-32, padded with NUL (NumPy `U`).
    FixedLengthUtf32 {
        /// Code points per element.
        length: u32,
    },
    /// At most `length` bytes, padded with NUL (NumPy `S`).
    NullTerminatedBytes {
        /// Bytes per element.
        length: u32,
    },
    /// Exactly `length` opaque bytes (NumPy `V`, Zarr `r<8 × length>`).
    RawBytes {
        /// Bytes per element.
        length: u32,
    },
    /// UTF-8 text of any length.
    String,
    /// Bytes of any length.
    Bytes,
    /// Named fields.
    Struct(Struct),
    /// The inner type, or missing.
    Optional(Box<DataType>),
}

/// Adjacent machine words of one size within an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WordRun {
    /// Bytes from the start of the element to the first word.
    pub offset: usize,
    /// Bytes of one word.
    pub size: usize,
    /// Number of words.
    pub count: usize,
}

impl WordRun {
    /// Reverses the bytes of each word in one element.
    pub fn reverse(&self, element: &mut [u8]) {
        let run = element.get_mut(self.offset..self.offset + self.size * self.count);
        run.into_iter().flat_map(|run| run.chunks_exact_mut(self.size.max(1))).for_each(<[u8]>::reverse);
    }
}

impl DataType {
    /// Maximum nesting depth of optional and structured types from untrusted input; it bounds every recursion over
    /// a type.
    pub const MAX_DEPTH: usize = 64;

    /// Returns the bytes of one element in memory; `None` for a variable-length type.
    ///
    /// An optional type has the size of its inner type: the mask is a separate buffer.
    ///
    /// ```
    /// use zarrow_array::{DataType, Number};
    /// assert_eq!(DataType::Number(Number::Complex64).item_size(), Some(8));
    /// assert_eq!(DataType::FixedLengthUtf32 { length: 5 }.item_size(), Some(20));
    /// assert_eq!(DataType::String.item_size(), None);
    /// ```
    #[must_use]
    pub fn item_size(&self) -> Option<usize> {
        match self {
            DataType::Number(number) => Some(number.names().item_size),
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => Some(8),
            DataType::FixedLengthUtf32 { length } => (*length as usize).checked_mul(4),
            DataType::NullTerminatedBytes { length } | DataType::RawBytes { length } => {
                Some(*length as usize)
            }
            DataType::String | DataType::Bytes => None,
            DataType::Struct(structure) => Some(structure.item_size()),
            DataType::Optional(inner) => inner.item_size(),
        }
    }

    /// Whether elements are times without a unit. NumPy's own code for them lacks the scale.
    #[must_use]
    pub fn is_without_unit(&self) -> bool {
        use DataType::{DateTime64, TimeDelta64};
        matches!(
            self,
            DateTime64 { unit: TimeUnit::Generic, .. } | TimeDelta64 { unit: TimeUnit::Generic, .. }
        )
    }

    /// Returns the size of an element's machine words, the unit of byte swapping; for a structure, the largest one.
    #[must_use]
    pub fn word_size(&self) -> usize {
        match self {
            DataType::Number(number) => number.names().word_size,
            DataType::DateTime64 { .. } | DataType::TimeDelta64 { .. } => 8,
            DataType::FixedLengthUtf32 { .. } => 4,
            DataType::Struct(_) => self.words().iter().map(|words| words.size).max().unwrap_or(1),
            DataType::Optional(inner) => inner.word_size(),
            _ => 1,
        }
    }

    /// Returns the machine words of one element, in memory order; empty if the type has no fixed size.
    ///
    /// Each field of a structure is a separate run, at any depth.
    #[must_use]
    pub fn words(&self) -> Vec<WordRun> {
        match (self, self.item_size()) {
            (DataType::Struct(structure), _) => {
                let mut words = Vec::new();
                structure.collect_words(0, &mut words);
                words
            }
            (DataType::Optional(inner), _) => inner.words(),
            (_, Some(nbytes)) => {
                let size = self.word_size();
                vec![WordRun { offset: 0, size, count: nbytes / size }]
            }
            (_, None) => Vec::new(),
        }
    }

    /// Returns the innermost type of nested optional types, or the type itself.
    #[must_use]
    pub fn without_optional(&self) -> &DataType {
        match self {
            DataType::Optional(inner) => inner.without_optional(),
            other => other,
        }
    }

    /// Returns the number of nested `optional` levels.
    #[must_use]
    pub fn optional_depth(&self) -> usize {
        match self {
            DataType::Optional(inner) => inner.optional_depth() + 1,
            _ => 0,
        }
    }

    /// Returns whether elements have variable length.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        matches!(self.without_optional(), DataType::String | DataType::Bytes)
    }

    /// Returns the numeric type, if this is one.
    #[must_use]
    pub fn as_number(&self) -> Option<Number> {
        match self {
            DataType::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the NumPy type string without byte order (`f4`, `M8[s]`, `U5`); `None` if NumPy lacks the type.
    #[must_use]
    pub fn numpy_code(&self) -> Option<String> {
        let time = |kind: &str, unit: TimeUnit, scale: u32| match (unit, scale) {
            (TimeUnit::Generic, 1) => format!("{kind}8"),
            (unit, 1) => format!("{kind}8[{}]", unit.code()),
            (unit, scale) => format!("{kind}8[{scale}{}]", unit.code()),
        };
        match self {
            DataType::Number(number) => number.names().numpy.map(str::to_owned),
            DataType::DateTime64 { unit, scale } => Some(time("M", *unit, *scale)),
            DataType::TimeDelta64 { unit, scale } => Some(time("m", *unit, *scale)),
            DataType::FixedLengthUtf32 { length } => Some(format!("U{length}")),
            DataType::NullTerminatedBytes { length } => Some(format!("S{length}")),
            DataType::RawBytes { length } => Some(format!("V{length}")),
            DataType::String | DataType::Bytes | DataType::Struct(_) | DataType::Optional(_) => None,
        }
    }

    /// Returns the PEP 3118 format; `None` if there is no such format. A structure has one if all of its fields do.
    ///
    /// ```
    /// use zarrow_array::{DataType, Number};
    /// assert_eq!(DataType::Number(Number::Complex64).pep3118().as_deref(), Some("Zf"));
    /// assert_eq!(DataType::Number(Number::BFloat16).pep3118(), None);
    /// ```
    #[must_use]
    pub fn pep3118(&self) -> Option<String> {
        pep3118::format(self)
    }
}

impl From<Number> for DataType {
    fn from(number: Number) -> Self {
        DataType::Number(number)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Number(number) => formatter.write_str(number.names().zarr),
            DataType::DateTime64 { unit, scale: 1 } => write!(formatter, "datetime64[{}]", unit.code()),
            DataType::DateTime64 { unit, scale } => write!(formatter, "datetime64[{scale}{}]", unit.code()),
            DataType::TimeDelta64 { unit, scale: 1 } => write!(formatter, "timedelta64[{}]", unit.code()),
            DataType::TimeDelta64 { unit, scale } => write!(formatter, "timedelta64[{scale}{}]", unit.code()),
            DataType::FixedLengthUtf32 { length } => write!(formatter, "U{length}"),
            DataType::NullTerminatedBytes { length } => write!(formatter, "S{length}"),
            DataType::RawBytes { length } => write!(formatter, "V{length}"),
            DataType::String => formatter.write_str("string"),
            DataType::Bytes => formatter.write_str("bytes"),
            DataType::Struct(structure) => structure.fmt(formatter),
            DataType::Optional(inner) => write!(formatter, "optional[{inner}]"),
        }
    }
}
