//! A group as a table.

use crate::error::Result;
use crate::node::any::Node;
use crate::node::group::Group;
use crate::node::table::anndata::{EncodedArray, table_columns};
use crate::node::table::arrow::{Column, Table, TableOptions};
use zarrow_array::allocation::{self, Grow};

impl Group {
    /// Returns the arrays at `columns`, or the groups that stand for an array ([`EncodedArray`]), as a table. If
    /// `columns` is `None`: the columns of an AnnData table, in their order; in other groups, all arrays directly
    /// below that have an axis.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if the lengths differ, or there are no columns;
    /// [`ErrorKind::WrongNode`](crate::ErrorKind::WrongNode) if a column is a group; and as [`get`](Group::get).
    pub fn table(&self, columns: Option<&[String]>, options: TableOptions) -> Result<Table> {
        let of_table = if columns.is_none() { table_columns(self)? } else { None };
        let columns = match columns.or(of_table.as_deref()) {
            Some(names) => allocation::try_collected(
                names.iter().map(|name| Column::from_node(name, self.get_named(name)?)),
            ),
            None => {
                let mut found = Vec::new();
                for (name, child) in self.children()? {
                    match child? {
                        Node::Array(array) if array.shape().is_empty() => {}
                        Node::Group(group) if EncodedArray::from_group(&group)?.is_none() => {}
                        node => found.try_push(Column::from_node(&name, node)?)?,
                    }
                }
                Ok(found)
            }
        };
        let table =
            Table::new(columns?, options).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        Ok(table.with_attributes(self.metadata.attributes.clone()))
    }
}
