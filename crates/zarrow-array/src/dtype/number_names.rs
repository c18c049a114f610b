//! The numeric data types, and the table of their names in each protocol.
//!
//! If a row has no name in a protocol, the export returns an error; it never substitutes a type of the same width.
//! `docs/data-types.md` lists the results for each protocol.
//!
//! - Numbers smaller than a byte take one byte each in memory, as in `ml_dtypes` and in Zarr's `bytes` codec; the
//!   upper bits are undefined. DLPack packs them, so they have no DLPack type here.
//! - Complex numbers are stored as real part, imaginary part. Types known neither to NumPy nor to `ml_dtypes` are
//!   exported to NumPy as a structure of `real` and `imag`.

use zarrow_dlpack::{DLDataType, DLDataTypeCode};

/// One row of the table: the names of one numeric type in the protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberNames {
    /// Name in Zarr v3 metadata; also in Zarr v2 if NumPy has no type string.
    pub zarr: &'static str,
    /// Alternative name in Zarr v3 metadata.
    pub alias: Option<&'static str>,
    /// Bytes of one element.
    pub item_size: usize,
    /// Bytes of one machine word, the unit of byte swapping (a complex number has two).
    pub word_size: usize,
    /// Significant low bits of one word, as stored by Zarr's `packbits` codec.
    pub bits: u32,
    /// NumPy type string without byte order; `None` if NumPy lacks the type.
    pub numpy: Option<&'static str>,
    /// Name in `ml_dtypes`, for types that NumPy lacks.
    pub ml_dtypes: Option<&'static str>,
    /// DLPack type.
    pub dlpack: Option<DLDataType>,
    /// Format string of the Arrow C data interface.
    pub arrow: Option<&'static str>,
    /// PEP 3118 format of the buffer protocol.
    pub pep3118: Option<&'static str>,
}

macro_rules! numbers {
    ($( $variant:ident $zarr:literal $(= $alias:literal)?, $item:literal $word:literal $bits:literal,
        $library:ident $name:literal, $code:ident $dlpack:literal, $arrow:literal $pep3118:literal; )*) => {
        /// A data type with one fixed-size number per element.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Number {
            $( #[doc = concat!("Zarr `", $zarr, "`.")] $variant, )*
        }

        impl Number {
            /// Every numeric type, in table order.
            pub const ALL: &'static [Number] = &[$( Number::$variant ),*];

            /// Returns this type's row of the table.
            #[must_use]
            #[inline]
            pub const fn names(self) -> NumberNames {
                match self {
                    $( Number::$variant => NumberNames {
                        zarr: $zarr,
                        alias: name(concat!($($alias)?)),
                        item_size: $item,
                        word_size: $word,
                        bits: $bits,
                        numpy: name(numbers!(@numpy $library $name)),
                        ml_dtypes: name(numbers!(@ml_dtypes $library $name)),
                        dlpack: numbers!(@dlpack $code $dlpack),
                        arrow: name($arrow),
                        pep3118: name($pep3118),
                    }, )*
                }
            }
        }
    };
    (@numpy NP $name:literal) => { $name };
    (@numpy $library:ident $name:literal) => { "" };
    (@ml_dtypes ML $name:literal) => { $name };
    (@ml_dtypes $library:ident $name:literal) => { "" };
    (@dlpack NONE $bits:literal) => { None };
    (@dlpack $code:ident $bits:literal) => { Some(DLDataType::new(DLDataTypeCode::$code, $bits)) };
}

/// Converts a cell of the table; `""` means that the protocol has no name.
const fn name(cell: &'static str) -> Option<&'static str> {
    if cell.is_empty() { None } else { Some(cell) }
}

#[rustfmt::skip]
numbers! {
    // variant              Zarr v3 name (= alias)           item, word, bits; NumPy or ml_dtypes; DLPack; Arrow, PEP 3118
    Bool                  "bool",                            1 1  1, NP "b1",                 BOOL 8,               ""  "?";
    Int8                  "int8",                            1 1  8, NP "i1",                 INT 8,                "c" "b";
    Int16                 "int16",                           2 2 16, NP "i2",                 INT 16,               "s" "h";
    Int32                 "int32",                           4 4 32, NP "i4",                 INT 32,               "i" "i";
    Int64                 "int64",                           8 8 64, NP "i8",                 INT 64,               "l" "l";
    UInt8                 "uint8",                           1 1  8, NP "u1",                 UINT 8,               "C" "B";
    UInt16                "uint16",                          2 2 16, NP "u2",                 UINT 16,              "S" "H";
    UInt32                "uint32",                          4 4 32, NP "u4",                 UINT 32,              "I" "I";
    UInt64                "uint64",                          8 8 64, NP "u8",                 UINT 64,              "L" "L";
    Int2                  "int2",                            1 1  2, ML "int2",               NONE 0,               ""  "";
    Int4                  "int4",                            1 1  4, ML "int4",               NONE 0,               ""  "";
    UInt2                 "uint2",                           1 1  2, ML "uint2",              NONE 0,               ""  "";
    UInt4                 "uint4",                           1 1  4, ML "uint4",              NONE 0,               ""  "";
    Float16               "float16",                         2 2 16, NP "f2",                 FLOAT 16,             "e" "e";
    Float32               "float32",                         4 4 32, NP "f4",                 FLOAT 32,             "f" "f";
    Float64               "float64",                         8 8 64, NP "f8",                 FLOAT 64,             "g" "d";
    BFloat16              "bfloat16",                        2 2 16, ML "bfloat16",           BFLOAT 16,            ""  "";
    Float8E3M4            "float8_e3m4",                     1 1  8, ML "float8_e3m4",        FLOAT8_E3M4 8,        ""  "";
    Float8E4M3            "float8_e4m3",                     1 1  8, ML "float8_e4m3",        FLOAT8_E4M3 8,        ""  "";
    Float8E4M3B11         "float8_e4m3b11fnuz",              1 1  8, ML "float8_e4m3b11fnuz", FLOAT8_E4M3B11FNUZ 8, ""  "";
    Float8E4M3Fn          "float8_e4m3fn",                   1 1  8, ML "float8_e4m3fn",      FLOAT8_E4M3FN 8,      ""  "";
    Float8E4M3Fnuz        "float8_e4m3fnuz",                 1 1  8, ML "float8_e4m3fnuz",    FLOAT8_E4M3FNUZ 8,    ""  "";
    Float8E5M2            "float8_e5m2",                     1 1  8, ML "float8_e5m2",        FLOAT8_E5M2 8,        ""  "";
    Float8E5M2Fnuz        "float8_e5m2fnuz",                 1 1  8, ML "float8_e5m2fnuz",    FLOAT8_E5M2FNUZ 8,    ""  "";
    Float8E8M0Fnu         "float8_e8m0fnu",                  1 1  8, ML "float8_e8m0fnu",     FLOAT8_E8M0FNU 8,     ""  "";
    Float6E2M3Fn          "float6_e2m3fn",                   1 1  6, ML "float6_e2m3fn",      NONE 0,               ""  "";
    Float6E3M2Fn          "float6_e3m2fn",                   1 1  6, ML "float6_e3m2fn",      NONE 0,               ""  "";
    Float4E2M1Fn          "float4_e2m1fn",                   1 1  4, ML "float4_e2m1fn",      NONE 0,               ""  "";
    Complex64             "complex64" = "complex_float32",   8 4 32, NP "c8",                 COMPLEX 64,           ""  "Zf";
    Complex128            "complex128" = "complex_float64", 16 8 64, NP "c16",                COMPLEX 128,          ""  "Zd";
    ComplexFloat16        "complex_float16",                 4 2 16, ML "complex32",          COMPLEX 32,           ""  "";
    ComplexBFloat16       "complex_bfloat16",                4 2 16, ML "bcomplex32",         NONE 0,               ""  "";
    ComplexFloat8E3M4     "complex_float8_e3m4",             2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E4M3     "complex_float8_e4m3",             2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E4M3B11  "complex_float8_e4m3b11fnuz",      2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E4M3Fn   "complex_float8_e4m3fn",           2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E4M3Fnuz "complex_float8_e4m3fnuz",         2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E5M2     "complex_float8_e5m2",             2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E5M2Fnuz "complex_float8_e5m2fnuz",         2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat8E8M0Fnu  "complex_float8_e8m0fnu",          2 1  8, NO "",                   NONE 0,               ""  "";
    ComplexFloat6E2M3Fn   "complex_float6_e2m3fn",           2 1  6, NO "",                   NONE 0,               ""  "";
    ComplexFloat6E3M2Fn   "complex_float6_e3m2fn",           2 1  6, NO "",                   NONE 0,               ""  "";
    ComplexFloat4E2M1Fn   "complex_float4_e2m1fn",           2 1  4, NO "",                   NONE 0,               ""  "";
}

/// The table indexed by DLPack code and bits: every import looks up a type.
static BY_DLPACK: [[Option<Number>; 129]; 18] = {
    let mut table = [[None; 129]; 18];
    let mut at = 0;
    while at < Number::ALL.len() {
        if let Some(dtype) = Number::ALL[at].names().dlpack {
            table[dtype.code.0 as usize][dtype.bits as usize] = Some(Number::ALL[at]);
        }
        at += 1;
    }
    table
};

/// The table indexed by letter and size of NumPy's type strings.
static BY_KIND: [(u8, [Option<Number>; 17]); 5] = [
    (b'b', numbers_of_kind(b'b')),
    (b'i', numbers_of_kind(b'i')),
    (b'u', numbers_of_kind(b'u')),
    (b'f', numbers_of_kind(b'f')),
    (b'c', numbers_of_kind(b'c')),
];

const fn numbers_of_kind(kind: u8) -> [Option<Number>; 17] {
    let mut table = [None; 17];
    let mut at = 0;
    while at < Number::ALL.len() {
        let names = Number::ALL[at].names();
        if let Some(code) = names.numpy
            && code.as_bytes()[0] == kind
        {
            table[names.item_size] = Some(Number::ALL[at]);
        }
        at += 1;
    }
    table
}

impl Number {
    /// Returns the numeric type named `name` in Zarr v3 metadata.
    ///
    /// ```
    /// use zarrow_array::Number;
    /// assert_eq!(Number::from_zarr_name("int16"), Some(Number::Int16));
    /// assert_eq!(Number::from_zarr_name("complex_float32"), Some(Number::Complex64));
    /// assert_eq!(Number::from_zarr_name("decimal"), None);
    /// ```
    #[must_use]
    pub fn from_zarr_name(name: &str) -> Option<Number> {
        Self::ALL.iter().copied().find(|number| {
            let names = number.names();
            names.zarr == name || names.alias == Some(name)
        })
    }

    /// Returns the numeric type for a DLPack type; `None` if Zarr lacks the type.
    #[must_use]
    pub fn from_dlpack(dtype: DLDataType) -> Option<Number> {
        let row = BY_DLPACK.get(usize::from(dtype.code.0)).filter(|_| dtype.lanes == 1)?;
        *row.get(usize::from(dtype.bits))?
    }

    /// Returns the numeric type with the NumPy type string `<kind><item_size>`.
    #[must_use]
    pub fn from_kind_and_size(kind: u8, item_size: usize) -> Option<Number> {
        let row = BY_KIND.iter().find(|(known, _)| *known == kind)?.1;
        *row.get(item_size)?
    }

    /// Returns the type of a complex number's two parts; `None` for other numbers.
    ///
    /// ```
    /// use zarrow_array::Number;
    /// assert_eq!(Number::Complex128.part(), Some(Number::Float64));
    /// assert_eq!(Number::Float64.part(), None);
    /// ```
    #[must_use]
    pub fn part(self) -> Option<Number> {
        let names = self.names();
        let part = |name: &str| name.strip_prefix("complex_").and_then(Number::from_zarr_name);
        part(names.zarr).or_else(|| names.alias.and_then(part))
    }

    /// Returns whether an element's words have undefined bits.
    #[must_use]
    pub const fn is_sub_byte(self) -> bool {
        let names = self.names();
        names.bits < 8 && !matches!(self, Number::Bool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_consistent() {
        for number in Number::ALL {
            let names = number.names();
            let parts = if number.part().is_some() { 2 } else { 1 };
            assert_eq!(names.item_size, names.word_size * parts, "{number:?}");
            assert_eq!(names.word_size, (names.bits as usize).div_ceil(8), "{number:?}");
            if let Some(part) = number.part() {
                assert_eq!((part.names().word_size, part.names().bits), (names.word_size, names.bits));
            }
            if let Some(dlpack) = names.dlpack {
                assert_eq!(dlpack.item_size(), names.item_size, "{number:?}");
                assert!(dlpack.to_dtype().is_ok(), "{number:?}");
            }
            assert!(names.numpy.is_none() || names.ml_dtypes.is_none());
            assert_eq!(
                names.numpy.is_some(),
                names.pep3118.is_some(),
                "NumPy writes a format for its own types"
            );
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = Number::ALL.iter().map(|number| number.names().zarr).collect();
        names.extend(Number::ALL.iter().filter_map(|number| number.names().alias));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(Number::ALL.iter().filter(|number| number.part().is_some()).count(), 15);
        assert_eq!(Number::ALL.iter().filter(|number| number.is_sub_byte()).count(), 10);
    }
}
