//! Choice of the Arrow type, for elements with several possible Arrow types. All others have the type that `field`
//! gives them.
//!
//! Following the PyCapsule interface, a consumer may request a schema. A request is only a preference: if it cannot
//! be met, the default is returned.

use crate::export::arrow_abi::ArrowSchema;

/// Form of rows with several axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowForm {
    /// `arrow.fixed_shape_tensor` with dimension names. It cannot hold strings; these are nested.
    #[default]
    Tensor,
    /// Nested fixed-size lists.
    Nested,
    /// No rows: all elements in C order.
    Flat,
}

/// Form of bools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoolForm {
    /// `arrow.bool8`: one byte per element, as in Zarr, without a copy.
    #[default]
    Bytes,
    /// Arrow's own bool: eight elements per byte, in new memory.
    Bits,
}

/// Form of variable-length strings and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// 64-bit offsets, without a copy.
    #[default]
    Large,
    /// 32-bit offsets in new memory; falls back to 64-bit offsets if the text is too long.
    Small,
    /// 16-byte views in new memory, over text that is not copied.
    Views,
}

/// The chosen forms for one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrowForm {
    /// Form of rows with several axes.
    pub rows: RowForm,
    /// Form of bools.
    pub bools: BoolForm,
    /// Form of strings and bytes.
    pub text: TextForm,
}

impl ArrowForm {
    /// Returns the form requested by a consumer's schema. Where the schema has no preference, `self` applies.
    #[must_use]
    pub fn requested(mut self, schema: &ArrowSchema) -> ArrowForm {
        let format = schema.format().to_bytes();
        if format.starts_with(b"+w:") {
            let is_tensor = schema.metadata("ARROW:extension:name") == Some(b"arrow.fixed_shape_tensor");
            self.rows = if is_tensor { RowForm::Tensor } else { RowForm::Nested };
            return schema.child(0).map_or(self, |item| {
                let rows = self.rows;
                ArrowForm { rows, ..self.requested(item) }
            });
        }
        match format {
            b"b" => self.bools = BoolForm::Bits,
            b"c" => self.bools = BoolForm::Bytes,
            b"U" | b"Z" => self.text = TextForm::Large,
            b"u" | b"z" => self.text = TextForm::Small,
            b"vu" | b"vz" => self.text = TextForm::Views,
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::arrow_abi::SchemaNode;

    #[test]
    fn a_requested_schema_selects_the_form() {
        let requested = |node: SchemaNode| ArrowForm::default().requested(&node.into_c());
        assert_eq!(requested(SchemaNode::plain(c"b")).bools, BoolForm::Bits);
        assert_eq!(requested(SchemaNode::plain(c"vu")).text, TextForm::Views);
        assert_eq!(requested(SchemaNode::plain(c"i")), ArrowForm::default());
        let list = |item| SchemaNode { children: vec![item], ..SchemaNode::formatted("+w:3") };
        let rows = requested(list(list(SchemaNode::plain(c"b"))));
        assert_eq!((rows.rows, rows.bools), (RowForm::Nested, BoolForm::Bits));
        let name = ("ARROW:extension:name".into(), "arrow.fixed_shape_tensor".into());
        let tensor = SchemaNode { metadata: vec![name], ..list(SchemaNode::plain(c"f")) };
        assert_eq!(requested(tensor).rows, RowForm::Tensor);
    }
}
