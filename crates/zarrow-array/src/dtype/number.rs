//! The numeric data types, and the one table that says how each protocol names them.
//!
//! A row that has no name in a protocol cannot be handed over by it: the export says so in an error, and
//! never sends a type that merely has the same width.

use zarrow_dlpack::{DLDataType, DLDataTypeCode};

/// One row of the table: how the protocols name one numeric type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberNames {
    /// The name in Zarr v3 metadata, which is also the NumPy (or `ml_dtypes`) name where there is one.
    pub zarr: &'static str,
    /// Bytes of one element.
    pub item_size: usize,
    /// Bytes of one machine word: what a change of byte order reverses (a complex number has two).
    pub word_size: usize,
    /// The NumPy type string without byte order, `None` where NumPy itself has no such type.
    pub numpy: Option<&'static str>,
    /// The DLPack type.
    pub dlpack: Option<DLDataType>,
    /// The format string of the Arrow C data interface.
    pub arrow: Option<&'static str>,
    /// The PEP 3118 format of the buffer protocol.
    pub pep3118: Option<&'static str>,
}

macro_rules! numbers {
    ($( $variant:ident $zarr:literal $item:literal $word:literal $numpy:expr, $code:ident $bits:literal, $arrow:expr, $pep:expr; )*) => {
        /// A data type whose elements are one number of a fixed size.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Number {
            $( #[doc = concat!("Zarr `", $zarr, "`.")] $variant, )*
        }

        impl Number {
            /// Every numeric type, in the order of the table.
            pub const ALL: &'static [Number] = &[$( Number::$variant ),*];

            /// The row of the table for this type.
            #[must_use]
            #[inline]
            pub const fn names(self) -> NumberNames {
                match self {
                    $( Number::$variant => NumberNames {
                        zarr: $zarr, item_size: $item, word_size: $word, numpy: $numpy,
                        dlpack: Some(DLDataType::new(DLDataTypeCode::$code, $bits)), arrow: $arrow, pep3118: $pep,
                    }, )*
                }
            }
        }
    };
}

numbers! {
    //  variant         zarr name             item word numpy         DLPack code and bits        arrow       PEP 3118
    Bool            "bool"                1 1 Some("b1"),  BOOL 8,                     None,       Some("?");
    Int8            "int8"                1 1 Some("i1"),  INT 8,                      Some("c"),  Some("b");
    Int16           "int16"               2 2 Some("i2"),  INT 16,                     Some("s"),  Some("h");
    Int32           "int32"               4 4 Some("i4"),  INT 32,                     Some("i"),  Some("i");
    Int64           "int64"               8 8 Some("i8"),  INT 64,                     Some("l"),  Some("l");
    UInt8           "uint8"               1 1 Some("u1"),  UINT 8,                     Some("C"),  Some("B");
    UInt16          "uint16"              2 2 Some("u2"),  UINT 16,                    Some("S"),  Some("H");
    UInt32          "uint32"              4 4 Some("u4"),  UINT 32,                    Some("I"),  Some("I");
    UInt64          "uint64"              8 8 Some("u8"),  UINT 64,                    Some("L"),  Some("L");
    Float16         "float16"             2 2 Some("f2"),  FLOAT 16,                   Some("e"),  Some("e");
    Float32         "float32"             4 4 Some("f4"),  FLOAT 32,                   Some("f"),  Some("f");
    Float64         "float64"             8 8 Some("f8"),  FLOAT 64,                   Some("g"),  Some("d");
    BFloat16        "bfloat16"            2 2 None,        BFLOAT 16,                  None,       None;
    Complex64       "complex64"           8 4 Some("c8"),  COMPLEX 64,                 None,       Some("Zf");
    Complex128      "complex128"         16 8 Some("c16"), COMPLEX 128,                None,       Some("Zd");
    Float8E3M4      "float8_e3m4"         1 1 None,        FLOAT8_E3M4 8,              None,       None;
    Float8E4M3      "float8_e4m3"         1 1 None,        FLOAT8_E4M3 8,              None,       None;
    Float8E4M3B11   "float8_e4m3b11fnuz"  1 1 None,        FLOAT8_E4M3B11FNUZ 8,       None,       None;
    Float8E4M3Fn    "float8_e4m3fn"       1 1 None,        FLOAT8_E4M3FN 8,            None,       None;
    Float8E4M3Fnuz  "float8_e4m3fnuz"     1 1 None,        FLOAT8_E4M3FNUZ 8,          None,       None;
    Float8E5M2      "float8_e5m2"         1 1 None,        FLOAT8_E5M2 8,              None,       None;
    Float8E5M2Fnuz  "float8_e5m2fnuz"     1 1 None,        FLOAT8_E5M2FNUZ 8,          None,       None;
    Float8E8M0Fnu   "float8_e8m0fnu"      1 1 None,        FLOAT8_E8M0FNU 8,           None,       None;
}

impl Number {
    /// The numeric type that Zarr v3 metadata calls `name`.
    ///
    /// ```
    /// use zarrow_array::Number;
    /// assert_eq!(Number::from_zarr_name("int16"), Some(Number::Int16));
    /// assert_eq!(Number::from_zarr_name("decimal"), None);
    /// ```
    #[must_use]
    pub fn from_zarr_name(name: &str) -> Option<Number> {
        Self::ALL.iter().copied().find(|number| number.names().zarr == name)
    }

    /// The numeric type that DLPack calls `dtype`, `None` where Zarr has none.
    #[must_use]
    pub fn from_dlpack(dtype: DLDataType) -> Option<Number> {
        Self::ALL.iter().copied().find(|number| number.names().dlpack == Some(dtype))
    }
}
