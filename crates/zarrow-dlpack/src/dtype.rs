//! Element types: the ABI's code, bits and lanes, and the closed list of types they can express.

use std::fmt;

/// `DLDataType`: an element type, always native-endian.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// The kind of number.
    pub code: DLDataTypeCode,
    /// Bits of one lane; for complex numbers, of both parts together.
    pub bits: u8,
    /// Numbers in one element; 1 except for vector types.
    pub lanes: u16,
}

/// `DLDataTypeCode`: one byte. DLPack 1.3 defines the values below.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataTypeCode(pub u8);

macro_rules! codes {
    ($($name:ident = $code:literal, $standard:literal;)+) => {
        impl DLDataTypeCode {
            $(#[doc = concat!("`", $standard, "`")]
            pub const $name: Self = Self($code);)+

            /// Every code, in ascending order.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

codes! {
    INT = 0, "kDLInt";
    UINT = 1, "kDLUInt";
    FLOAT = 2, "kDLFloat";
    OPAQUE_HANDLE = 3, "kDLOpaqueHandle";
    BFLOAT = 4, "kDLBfloat";
    COMPLEX = 5, "kDLComplex";
    BOOL = 6, "kDLBool";
    FLOAT8_E3M4 = 7, "kDLFloat8_e3m4";
    FLOAT8_E4M3 = 8, "kDLFloat8_e4m3";
    FLOAT8_E4M3B11FNUZ = 9, "kDLFloat8_e4m3b11fnuz";
    FLOAT8_E4M3FN = 10, "kDLFloat8_e4m3fn";
    FLOAT8_E4M3FNUZ = 11, "kDLFloat8_e4m3fnuz";
    FLOAT8_E5M2 = 12, "kDLFloat8_e5m2";
    FLOAT8_E5M2FNUZ = 13, "kDLFloat8_e5m2fnuz";
    FLOAT8_E8M0FNU = 14, "kDLFloat8_e8m0fnu";
    FLOAT6_E2M3FN = 15, "kDLFloat6_e2m3fn";
    FLOAT6_E3M2FN = 16, "kDLFloat6_e3m2fn";
    FLOAT4_E2M1FN = 17, "kDLFloat4_e2m1fn";
}

macro_rules! dtypes {
    ($($variant:ident = $code:ident, $bits:literal, $name:literal;)+) => {
        /// The element types that the ABI can express, with one lane each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Dtype {
            $(#[doc = concat!("`", $name, "`: ", $bits, " bits of code `", stringify!($code), "`.")]
            $variant,)+
        }

        impl Dtype {
            /// Every type, ordered by code and bits.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name used by NumPy and `ml_dtypes`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl DLDataType {
            /// Returns the ABI's description of `dtype`.
            ///
            /// ```
            /// use zarrow_dlpack::{DLDataType, DLDataTypeCode, Dtype};
            ///
            /// const FLOAT32: DLDataType = DLDataType::from_dtype(Dtype::Float32);
            /// assert_eq!(FLOAT32, DLDataType::new(DLDataTypeCode::FLOAT, 32));
            /// ```
            #[must_use]
            pub const fn from_dtype(dtype: Dtype) -> Self {
                match dtype { $(Dtype::$variant => Self::new(DLDataTypeCode::$code, $bits)),+ }
            }

            /// Returns the described type; the inverse of [`DLDataType::from_dtype`].
            ///
            /// # Errors
            ///
            /// [`DtypeError`] if the code is unknown, the code has no type of this size, or `lanes` is not 1.
            pub const fn to_dtype(self) -> Result<Dtype, DtypeError> {
                let Self { code, bits, lanes } = self;
                match (code, bits) {
                    _ if code.0 as usize >= DLDataTypeCode::ALL.len() => Err(DtypeError::UnknownCode { code: code.0 }),
                    _ if lanes != 1 => Err(DtypeError::Lanes { lanes }),
                    $((DLDataTypeCode::$code, $bits) => Ok(Dtype::$variant),)+
                    _ => Err(DtypeError::Bits { code, bits }),
                }
            }
        }
    };
}

dtypes! {
    Int2 = INT, 2, "int2";
    Int4 = INT, 4, "int4";
    Int8 = INT, 8, "int8";
    Int16 = INT, 16, "int16";
    Int32 = INT, 32, "int32";
    Int64 = INT, 64, "int64";
    UInt2 = UINT, 2, "uint2";
    UInt4 = UINT, 4, "uint4";
    UInt8 = UINT, 8, "uint8";
    UInt16 = UINT, 16, "uint16";
    UInt32 = UINT, 32, "uint32";
    UInt64 = UINT, 64, "uint64";
    Float16 = FLOAT, 16, "float16";
    Float32 = FLOAT, 32, "float32";
    Float64 = FLOAT, 64, "float64";
    OpaqueHandle = OPAQUE_HANDLE, 64, "handle";
    BFloat16 = BFLOAT, 16, "bfloat16";
    Complex32 = COMPLEX, 32, "complex32";
    Complex64 = COMPLEX, 64, "complex64";
    Complex128 = COMPLEX, 128, "complex128";
    Bool = BOOL, 8, "bool";
    Float8E3M4 = FLOAT8_E3M4, 8, "float8_e3m4";
    Float8E4M3 = FLOAT8_E4M3, 8, "float8_e4m3";
    Float8E4M3B11Fnuz = FLOAT8_E4M3B11FNUZ, 8, "float8_e4m3b11fnuz";
    Float8E4M3Fn = FLOAT8_E4M3FN, 8, "float8_e4m3fn";
    Float8E4M3Fnuz = FLOAT8_E4M3FNUZ, 8, "float8_e4m3fnuz";
    Float8E5M2 = FLOAT8_E5M2, 8, "float8_e5m2";
    Float8E5M2Fnuz = FLOAT8_E5M2FNUZ, 8, "float8_e5m2fnuz";
    Float8E8M0Fnu = FLOAT8_E8M0FNU, 8, "float8_e8m0fnu";
    Float6E2M3Fn = FLOAT6_E2M3FN, 6, "float6_e2m3fn";
    Float6E3M2Fn = FLOAT6_E3M2FN, 6, "float6_e3m2fn";
    Float4E2M1Fn = FLOAT4_E2M1FN, 4, "float4_e2m1fn";
}

impl DLDataType {
    /// Creates the type with `code`, `bits` bits and one lane.
    #[must_use]
    pub const fn new(code: DLDataTypeCode, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// Returns the bytes from one element to the next: bits times lanes, rounded up to whole bytes.
    ///
    /// For a sub-byte type this is the padded size. A packed tensor of `n` elements takes `(n * bits).div_ceil(8)`
    /// bytes, with the first element in the lowest bits.
    #[must_use]
    pub const fn item_size(self) -> usize {
        (self.bits as usize * self.lanes as usize).div_ceil(8)
    }

    /// Returns whether the element size is not a whole number of bytes.
    #[must_use]
    pub const fn is_sub_byte(self) -> bool {
        !(self.bits as usize * self.lanes as usize).is_multiple_of(8)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl fmt::Display for DLDataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_dtype() {
            Ok(dtype) => dtype.fmt(formatter),
            Err(_) => write!(formatter, "code {}, {} bits, {} lanes", self.code.0, self.bits, self.lanes),
        }
    }
}

/// Why a [`DLDataType`] names no [`Dtype`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DtypeError {
    /// DLPack 1.3 has no such code.
    UnknownCode {
        /// The code found.
        code: u8,
    },
    /// DLPack 1.3 has no such code.
    Bits {
        /// The code found.
        code: DLDataTypeCode,
        /// The bits found.
        bits: u8,
    },
    /// A vector type, or zero lanes.
    Lanes {
        /// The lanes found.
        lanes: u16,
    },
}

impl fmt::Display for DtypeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCode { code } => write!(formatter, "unknown DLPack data type code {code}"),
            Self::Bits { code, bits } => {
                write!(formatter, "the DLPack data type code {} has no type of {bits} bits", code.0)
            }
            Self::Lanes { lanes } => write!(formatter, "DLPack elements must have 1 lane, not {lanes}"),
        }
    }
}

impl std::error::Error for DtypeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_size_is_a_type_or_a_typed_error() {
        let mut types = 0;
        for code in 0..=u8::MAX {
            for bits in 0..=u8::MAX {
                let description = DLDataType::new(DLDataTypeCode(code), bits);
                match description.to_dtype() {
                    Ok(dtype) => {
                        assert_eq!(DLDataType::from_dtype(dtype), description);
                        types += 1;
                    }
                    Err(DtypeError::UnknownCode { code: found }) => assert!(found == code && code > 17),
                    Err(error) => {
                        assert_eq!(error, DtypeError::Bits { code: DLDataTypeCode(code), bits });
                        assert!(code <= 17);
                    }
                }
            }
        }
        assert_eq!(types, Dtype::ALL.len());
    }

    #[test]
    fn every_type_round_trips_through_its_description() {
        for &dtype in Dtype::ALL {
            let description = DLDataType::from_dtype(dtype);
            assert_eq!(description.to_dtype(), Ok(dtype));
            for lanes in [0, 2, u16::MAX] {
                assert_eq!(DLDataType { lanes, ..description }.to_dtype(), Err(DtypeError::Lanes { lanes }));
            }
        }
    }

    #[test]
    fn codes_count_up_without_a_gap() {
        for (value, code) in DLDataTypeCode::ALL.iter().enumerate() {
            assert_eq!(usize::from(code.0), value);
        }
    }

    #[test]
    fn names_tell_code_and_size() {
        for &dtype in Dtype::ALL {
            let bits: String = dtype
                .name()
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            let expected = match dtype {
                Dtype::Bool => 8,
                Dtype::OpaqueHandle => 64,
                _ => bits.parse().unwrap(),
            };
            assert_eq!(DLDataType::from_dtype(dtype).bits, expected, "{dtype}");
        }
    }

    #[test]
    fn sub_byte_items_are_padded_to_bytes() {
        let size = |dtype| DLDataType::from_dtype(dtype).item_size();
        assert_eq!([Dtype::Int2, Dtype::Float6E2M3Fn, Dtype::Bool].map(size), [1, 1, 1]);
        assert_eq!([Dtype::BFloat16, Dtype::Float64, Dtype::Complex128].map(size), [2, 8, 16]);
        let sub_byte =
            Dtype::ALL.iter().filter(|&&dtype| DLDataType::from_dtype(dtype).is_sub_byte()).count();
        assert_eq!(sub_byte, 7);
        assert_eq!(
            DLDataType { code: DLDataTypeCode::FLOAT, bits: 255, lanes: u16::MAX }.item_size(),
            2_088_929
        );
    }
}
