//! Which of several Arrow types an array is handed over as, where Arrow has more than one for the same elements.
//!
//! A consumer may ask for one by the schema that it requests, as the PyCapsule interface has it: a request is a
//! wish, and what cannot be had is answered with the default.

use crate::export::arrow_abi::ArrowSchema;

/// How rows of several axes look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowForm {
    /// `arrow.fixed_shape_tensor`, with the names of its axes; strings, which it cannot hold, are nested.
    #[default]
    Tensor,
    /// Fixed-size lists in fixed-size lists.
    Nested,
    /// No rows: the elements one after the other in C order.
    Flat,
}

/// How bools look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoolForm {
    /// `arrow.bool8`: one byte an element, as in Zarr, so that nothing is copied.
    #[default]
    Bytes,
    /// Arrow's own bool: eight elements a byte, which are new.
    Bits,
}

/// How strings and bytes of any length look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// Offsets of 64 bits: nothing is copied.
    #[default]
    Large,
    /// Offsets of 32 bits, which are new; large ones where the text is longer than they reach.
    Small,
    /// Views of 16 bytes an element, which are new, over text that is not copied.
    Views,
}

/// The choice for one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrowForm {
    /// How rows of several axes look.
    pub rows: RowForm,
    /// How bools look.
    pub bools: BoolForm,
    /// How strings and bytes look.
    pub text: TextForm,
}

impl ArrowForm {
    /// The form that a consumer's schema asks for, and this one where it does not say.
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
    fn a_schema_asks_for_a_form() {
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
