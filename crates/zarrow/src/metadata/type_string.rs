//! NumPy type strings (`<f4`, `|S5`, `<M8[10us]`), the data types of Zarr version 2.

use zarrow_array::{DataType, Number};

/// Byte order at the start of a type string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
    /// `|`: the type has no byte order.
    None,
}

impl ByteOrder {
    /// Returns the byte order at the start of `text`, if any.
    pub(super) fn from_type_string(text: &str) -> Option<ByteOrder> {
        match text.as_bytes().first()? {
            b'<' => Some(ByteOrder::Little),
            b'>' => Some(ByteOrder::Big),
            b'|' => Some(ByteOrder::None),
            _ => None,
        }
    }

    /// Returns the byte order of the words of `text`'s type if it is one of NumPy's. The default is little-endian,
    /// since all writers run on such machines.
    pub(super) fn from_stored(text: &str) -> Option<ByteOrder> {
        let order = ByteOrder::from_type_string(text);
        let code = text.get(usize::from(order.is_some())..)?;
        let number = Number::from_zarr_name(code).map(DataType::from);
        let data_type = number.or_else(|| DataType::from_numpy_code(code))?;
        match order {
            _ if data_type.word_size() == 1 => Some(ByteOrder::None),
            None | Some(ByteOrder::None) => Some(ByteOrder::Little),
            order => order,
        }
    }
}

/// Meaning of a type string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeString {
    /// A fixed-size type.
    Fixed(DataType, ByteOrder),
    /// `|O`: the filters define the objects.
    Object,
}

impl TypeString {
    /// Reads a type string; returns `None` if it is invalid or its type is not supported.
    pub(super) fn parse(text: &str) -> Option<TypeString> {
        // TensorStore writes types outside NumPy under their plain names, little-endian.
        if let Some(number) = Number::from_zarr_name(text).filter(|number| number.names().numpy.is_none()) {
            let order = if number.names().word_size == 1 { ByteOrder::None } else { ByteOrder::Little };
            return Some(TypeString::Fixed(DataType::Number(number), order));
        }
        let order = ByteOrder::from_type_string(text)?;
        let code = text.get(1..)?;
        if code.starts_with('O') {
            return Some(TypeString::Object);
        }
        let data_type = DataType::from_numpy_code(code)?;
        let order = match order {
            // Some writers omit the byte order; they run on little-endian machines.
            ByteOrder::None if data_type.word_size() > 1 => ByteOrder::Little,
            order => order,
        };
        Some(TypeString::Fixed(data_type, order))
    }
}

/// Returns the type string of `data_type` in the byte order `order`; `None` if version 2 has no such type.
pub(super) fn type_string(data_type: &DataType, order: ByteOrder) -> Option<String> {
    let code = match data_type {
        DataType::String | DataType::Bytes => return Some("|O".to_owned()),
        DataType::Optional(_) => return None,
        DataType::Number(number) if number.names().numpy.is_none() => {
            // The plain names of `parse`, without a byte order.
            return (order != ByteOrder::Big).then(|| number.names().zarr.to_owned());
        }
        other => other.numpy_code()?,
    };
    let order = match order {
        _ if data_type.word_size() == 1 => '|',
        ByteOrder::Big => '>',
        ByteOrder::Little | ByteOrder::None => '<',
    };
    Some(format!("{order}{code}"))
}
