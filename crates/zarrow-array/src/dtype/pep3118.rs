//! PEP 3118 formats, the element types of the buffer protocol.
//!
//! Fields of structures start with `=`: standard sizes, and only the explicit padding written as `x`. The `=`
//! follows the shape, where NumPy expects it.

use super::{DataType, Struct};
use std::fmt::Write as _;

/// Returns the format of `data_type`; `None` if PEP 3118 cannot express the type.
pub(super) fn format(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Number(number) => number.names().pep3118?.to_owned(),
        DataType::FixedLengthUtf32 { length } => format!("{length}w"),
        DataType::NullTerminatedBytes { length } => format!("{length}s"),
        DataType::Struct(structure) => {
            let mut text = "T{".to_owned();
            fields(structure, &mut text)?;
            text
        }
        _ => return None,
    })
}

/// Writes the fields, their padding, and the closing brace.
fn fields(structure: &Struct, text: &mut String) -> Option<()> {
    let mut end = 0;
    for field in structure.fields() {
        // The format has no way to escape its delimiter in a name.
        if field.name.contains(':') {
            return None;
        }
        pad(field.offset - end, text);
        if !field.shape.is_empty() {
            let extents: Vec<String> = field.shape.iter().map(u64::to_string).collect();
            write!(text, "({})", extents.join(",")).ok()?;
        }
        match &field.data_type {
            DataType::Struct(inner) => {
                text.push_str("T{");
                fields(inner, text)?;
            }
            DataType::RawBytes { length } => write!(text, "{length}x").ok()?,
            plain => match format(plain)?.as_str() {
                // 8 bytes in native size, but 4 in standard size.
                "l" => text.push_str("=q"),
                "L" => text.push_str("=Q"),
                other => write!(text, "={other}").ok()?,
            },
        }
        write!(text, ":{}:", field.name).ok()?;
        end = field.offset + field.nbytes()?;
    }
    pad(structure.item_size() - end, text);
    text.push('}');
    Some(())
}

fn pad(nbytes: usize, text: &mut String) {
    if nbytes > 0 {
        text.push_str(&format!("{nbytes}x"));
    }
}

#[cfg(test)]
mod tests {
    use crate::{DataType, Field, Number, Struct};

    #[test]
    fn structure_formats_include_padding_and_subarrays() {
        let field = |name: &str, data_type: DataType, shape: &[u64], offset| Field {
            name: name.into(),
            data_type,
            shape: shape.into(),
            offset,
        };
        let inner =
            Struct::packed([("x".into(), Number::UInt8.into(), [].into())]).map(DataType::Struct).unwrap();
        let fields = vec![
            field("a", Number::Int32.into(), &[], 0),
            field("b", Number::Float64.into(), &[2, 3], 8),
            field("c", inner, &[], 56),
            field("d", DataType::RawBytes { length: 3 }, &[], 57),
        ];
        let format = DataType::Struct(Struct::new(fields, 64).unwrap()).pep3118();
        assert_eq!(format.as_deref(), Some("T{=i:a:4x(2,3)=d:b:T{=B:x:}:c:3x:d:4x}"));
        let time = DataType::DateTime64 { unit: crate::TimeUnit::Second, scale: 1 };
        let dated = Struct::packed([("t".into(), time, [].into())]).unwrap();
        assert_eq!(DataType::Struct(dated).pep3118(), None);
    }
}
