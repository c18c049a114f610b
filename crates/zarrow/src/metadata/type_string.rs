//! NumPy type strings (`<f4`, `|S5`, `<M8[10us]`), by which Zarr version 2 names its data types.

use zarrow_array::{DataType, Number};

/// The byte order that a type string begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
    /// `|`: the type has none.
    None,
}

impl ByteOrder {
    /// The byte order of `text`, where it begins with one.
    pub(super) fn of(text: &str) -> Option<ByteOrder> {
        match text.as_bytes().first()? {
            b'<' => Some(ByteOrder::Little),
            b'>' => Some(ByteOrder::Big),
            b'|' => Some(ByteOrder::None),
            _ => None,
        }
    }

    /// The byte order of the words of the type that `text` names, where it is one of NumPy's: little-endian, that of the
    /// machines of all writers, where it does not say.
    pub(super) fn of_stored(text: &str) -> Option<ByteOrder> {
        let order = ByteOrder::of(text);
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

/// What a type string stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeString {
    /// A type of a fixed size.
    Fixed(DataType, ByteOrder),
    /// `|O`: the filters say what the objects are.
    Object,
}

impl TypeString {
    /// Reads a type string, `None` where it is none or names a type that is not supported.
    pub(super) fn parse(text: &str) -> Option<TypeString> {
        // TensorStore writes the types that NumPy lacks under their plain names, little-endian.
        if let Some(number) = Number::from_zarr_name(text).filter(|number| number.names().numpy.is_none()) {
            let order = if number.names().word_size == 1 { ByteOrder::None } else { ByteOrder::Little };
            return Some(TypeString::Fixed(DataType::Number(number), order));
        }
        let order = ByteOrder::of(text)?;
        let code = text.get(1..)?;
        if code.starts_with('O') {
            return Some(TypeString::Object);
        }
        let data_type = DataType::from_numpy_code(code)?;
        let order = match order {
            // Some writers leave the byte order out; the machines that they run on are little-endian.
            ByteOrder::None if data_type.word_size() > 1 => ByteOrder::Little,
            order => order,
        };
        Some(TypeString::Fixed(data_type, order))
    }
}

/// The type string of `data_type` in the byte order `order`, `None` where version 2 has none.
pub(super) fn type_string(data_type: &DataType, order: ByteOrder) -> Option<String> {
    let code = match data_type {
        DataType::String | DataType::Bytes => return Some("|O".to_owned()),
        DataType::Optional(_) => return None,
        DataType::Number(number) if number.names().numpy.is_none() => {
            // The plain names of `parse`, which say no byte order.
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
