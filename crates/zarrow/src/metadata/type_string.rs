//! NumPy type strings (`<f4`, `|S5`, `<M8[10us]`), by which Zarr version 2 names its data types.

use zarrow_array::{DataType, Number, TimeUnit};

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
        let mut rest = code.chars();
        let (kind, rest) = (rest.next()?, rest.as_str());
        let data_type = match kind {
            'O' => return Some(TypeString::Object),
            'U' => DataType::FixedLengthUtf32 { length: length(rest)? },
            'S' | 'a' => DataType::NullTerminatedBytes { length: length(rest)? },
            'V' => DataType::RawBytes { length: length(rest)? },
            'M' => time(rest).map(|(unit, scale)| DataType::DateTime64 { unit, scale })?,
            'm' => time(rest).map(|(unit, scale)| DataType::TimeDelta64 { unit, scale })?,
            _ => Number::ALL.iter().copied().find(|number| number.names().numpy == Some(code))?.into(),
        };
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

fn length(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|length| *length > 0)
}

/// The unit and scale of `8[10us]`; without brackets there is no unit.
fn time(text: &str) -> Option<(TimeUnit, u32)> {
    let text = text.strip_prefix('8')?;
    if text.is_empty() {
        return Some((TimeUnit::Generic, 1));
    }
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (scale, unit) = text.split_at(digits);
    let scale = if scale.is_empty() { 1 } else { scale.parse::<i32>().ok().filter(|scale| *scale > 0)? };
    Some((TimeUnit::from_code(unit)?, scale.unsigned_abs()))
}
