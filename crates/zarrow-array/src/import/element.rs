//! Element types of foreign memory, from PEP 3118 formats (`<f`, `3w`) and NumPy's type strings (`>f4`).
//!
//! Source: PEP 3118 and the `struct` module; NumPy, "The array interface protocol", `typestr`.

use crate::dtype::{DataType, Number, TimeUnit};

/// A type and its byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The type.
    pub dtype: DataType,
    /// Whether the elements are not native-endian.
    pub is_swapped: bool,
}

impl Element {
    fn new(dtype: DataType, order: u8) -> Element {
        let foreign = if cfg!(target_endian = "big") { b"<".as_slice() } else { b">!" };
        let is_swapped = dtype.word_size() > 1 && foreign.contains(&order);
        Element { dtype, is_swapped }
    }

    /// Parses a buffer's format; `None` for unsupported types: objects, structures, numbers of other sizes.
    ///
    /// `item_size` decides the size of C types: ctypes writes letters of native sizes together with the prefix of
    /// standard sizes.
    ///
    /// ```
    /// use zarrow_array::{Number, import::element::Element};
    /// let long = Element::from_format(b"<l", 8).unwrap();
    /// assert_eq!((long.dtype, long.is_swapped), (Number::Int64.into(), false));
    /// assert_eq!(Element::from_format(b"T{i:a:}", 4), None);
    /// ```
    #[must_use]
    pub fn from_format(format: &[u8], item_size: usize) -> Option<Element> {
        let (order, format) = match format {
            [order @ (b'@' | b'=' | b'<' | b'>' | b'!'), rest @ ..] => (*order, rest),
            rest => (b'@', rest),
        };
        let digits = format.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (count, letters) = format.split_at(digits);
        let length = match count {
            b"" => 1,
            count => str::from_utf8(count).ok()?.parse::<u32>().ok()?,
        };
        let number = |kind| Number::from_kind_and_size(kind, item_size).map(DataType::from);
        let dtype = match letters {
            b"s" | b"c" => DataType::NullTerminatedBytes { length },
            b"w" | b"u" => DataType::FixedLengthUtf32 { length },
            b"x" => DataType::RawBytes { length },
            _ if length != 1 => return None,
            b"?" => Number::Bool.into(),
            b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => number(b'i')?,
            b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" => number(b'u')?,
            b"e" | b"f" | b"d" | b"g" => number(b'f')?,
            b"Ze" | b"Zf" | b"Zd" | b"Zg" => number(b'c')?,
            _ => return None,
        };
        (item_size > 0 && dtype.item_size() == Some(item_size)).then(|| Element::new(dtype, order))
    }

    /// Parses NumPy's type string of an array; `None` for unsupported types.
    ///
    /// ```
    /// use zarrow_array::{DataType, TimeUnit, import::element::Element};
    /// let time = Element::from_type_string(">M8[10us]").unwrap();
    /// assert_eq!(time.dtype, DataType::DateTime64 { unit: TimeUnit::Microsecond, scale: 10 });
    /// assert!(time.is_swapped);
    /// ```
    #[must_use]
    pub fn from_type_string(text: &str) -> Option<Element> {
        let (order, code) = (*text.as_bytes().first()?, text.get(1..)?);
        if !b"<>|=".contains(&order) {
            return None;
        }
        let dtype = DataType::from_numpy_code(code)?;
        Some(Element::new(dtype, order))
    }
}

impl DataType {
    /// Returns the type that NumPy calls `code` (`f4`, `M8[10us]`, `U5`); the inverse of
    /// [`numpy_code`](Self::numpy_code).
    #[must_use]
    pub fn from_numpy_code(code: &str) -> Option<DataType> {
        let length = |digits: &str| digits.parse().ok().filter(|length| *length > 0);
        let mut letters = code.chars();
        let (kind, rest) = (letters.next()?, letters.as_str());
        Some(match kind {
            'U' => DataType::FixedLengthUtf32 { length: length(rest)? },
            'S' | 'a' => DataType::NullTerminatedBytes { length: length(rest)? },
            'V' => DataType::RawBytes { length: length(rest)? },
            'M' => time(rest).map(|(unit, scale)| DataType::DateTime64 { unit, scale })?,
            'm' => time(rest).map(|(unit, scale)| DataType::TimeDelta64 { unit, scale })?,
            _ => Number::ALL.iter().copied().find(|number| number.names().numpy == Some(code))?.into(),
        })
    }
}

/// Returns the unit and scale of `8[10us]`; without brackets the unit is generic.
fn time(text: &str) -> Option<(TimeUnit, u32)> {
    let text = text.strip_prefix('8')?;
    if text.is_empty() {
        return Some((TimeUnit::Generic, 1));
    }
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (scale, unit) = text.split_at(digits);
    // NumPy stores the scale in a C int.
    let scale = if scale.is_empty() { 1 } else { scale.parse::<i32>().ok().filter(|scale| *scale > 0)? };
    Some((TimeUnit::from_code(unit)?, scale.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_type_round_trips() {
        for number in Number::ALL {
            let names = number.names();
            if let Some(format) = names.pep3118 {
                let element = Element::from_format(format.as_bytes(), names.item_size).unwrap();
                assert_eq!(element, Element { dtype: (*number).into(), is_swapped: false });
            }
        }
        for code in ["f4", "U5", "S3", "V7", "M8", "m8[s]", "M8[25ns]", "b1", "c16"] {
            assert_eq!(DataType::from_numpy_code(code).unwrap().numpy_code().as_deref(), Some(code));
        }
    }

    #[test]
    fn the_item_size_decides_the_size() {
        assert_eq!(Element::from_format(b"l", 4).unwrap().dtype, Number::Int32.into());
        assert_eq!(Element::from_format(b"<L", 8).unwrap().dtype, Number::UInt64.into());
        assert_eq!(
            Element::from_format(b"3s", 3).unwrap().dtype,
            DataType::NullTerminatedBytes { length: 3 }
        );
        assert_eq!(Element::from_format(b"u", 4).unwrap().dtype, DataType::FixedLengthUtf32 { length: 1 });
        let wrong: [(&[u8], usize); 12] = [
            (b"i", 3),
            (b"g", 16),
            (b"3s", 4),
            (b"99999999999s", 3),
            (b"2i", 8),
            (b"O", 8),
            (b"", 1),
            (b"<", 1),
            (b"ii", 8),
            (b"(2)i", 8),
            (b"0s", 0),
            (b"Zi", 8),
        ];
        for (format, item_size) in wrong {
            assert_eq!(Element::from_format(format, item_size), None, "{}", format.escape_ascii());
        }
    }

    #[test]
    fn only_multi_byte_words_have_a_byte_order() {
        let foreign = if cfg!(target_endian = "big") { "<" } else { ">" };
        assert!(Element::from_type_string(&format!("{foreign}i2")).unwrap().is_swapped);
        assert!(Element::from_format(format!("{foreign}3w").as_bytes(), 12).unwrap().is_swapped);
        assert!(!Element::from_type_string(&format!("{foreign}i1")).unwrap().is_swapped);
        assert!(!Element::from_type_string("|S3").unwrap().is_swapped);
        for text in ["", "f4", "<f3", "<O8", "|V0", "<é", "<M8[fortnight]", "<M8[0s]", "<f4é"] {
            assert_eq!(Element::from_type_string(text), None, "{text}");
        }
    }
}
