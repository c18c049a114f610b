//! A group as a table.

use crate::error::Result;
use crate::node::any::{Members, Node};
use crate::node::group::Group;
use crate::node::table::anndata::{EncodedArray, table_columns};
use crate::node::table::arrow::{Column, Table, TableOptions};
use crate::store::join;
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
        let chosen = columns.or(of_table.as_deref());
        let nodes: Members = match chosen {
            Some(names) => {
                let nodes = self.get_each_named(names)?.into_iter().map(Ok);
                allocation::collected(names.iter().cloned().zip(nodes))?
            }
            None => self.children()?,
        };
        let columns = self.columns(nodes, chosen.is_some());
        let table =
            Table::new(columns?, options).map_err(|error| error.in_array(self.store.name(), &self.path))?;
        Ok(table.with_attributes(self.metadata.attributes.clone()))
    }

    /// Returns the columns of these members. Unless they are `chosen`, scalars and groups that represent no array are
    /// left out.
    fn columns(&self, nodes: Members, chosen: bool) -> Result<Vec<Column>> {
        // The members of all groups are requested together, unless a group has their metadata.
        let mut paths = Vec::new();
        for (_, node) in &nodes {
            if let Ok(Node::Group(group)) = node
                && !group.is_consolidated()
            {
                let below = group.path().strip_prefix(self.path()).unwrap_or_default();
                let members = EncodedArray::member_names(group).into_iter().flatten();
                paths.try_extend(members.map(|member| join(below.trim_start_matches('/'), member)))?;
            }
        }
        let mut members = self.get_each(&paths)?.into_iter();
        let mut found = Vec::new();
        for (name, node) in nodes {
            let column = match node? {
                Node::Array(array) if !chosen && array.shape().is_empty() => continue,
                Node::Array(array) => Column::new(&name, array),
                Node::Group(group) => {
                    let array = match group.is_consolidated() {
                        true => EncodedArray::from_group(&group)?,
                        false => EncodedArray::from_members(&group, &mut members)?,
                    };
                    match array {
                        Some(array) => Column::encoded(&name, &group, array),
                        None if chosen => Err(Column::no_array(&group)),
                        None => continue,
                    }
                }
            };
            found.try_push(column?)?;
        }
        Ok(found)
    }
}
