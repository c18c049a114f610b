//! `reshape`: another shape with the same number of elements, in the same C order.
//!
//! Source: zarr-extensions `reshape`.

use super::parameters::{Parameters, bad};
use super::{Filter, Shape};
use crate::codec::definition::{Definition, Stage};
use crate::codec::parameter::ParameterType;
use crate::error::Result;
use serde_json::Value;
use std::ops::Range;

/// The codec.
pub const DEFINITION: Definition = Definition {
    names: &["reshape"],
    parameters: &[("shape", ParameterType::List)],
    stage: Stage::Filter(parse),
    ..Definition::PLAIN
};

/// Extent of a stored axis.
#[derive(Debug, Clone, PartialEq)]
enum Extent {
    /// A fixed extent.
    Fixed(u64),
    /// The product of these axes' extents.
    Axes(Range<usize>),
    /// The remaining elements.
    Rest,
}

#[derive(Debug)]
struct Reshape(Vec<Extent>);

/// Parses the parameters.
pub fn parse(parameters: &Parameters<'_>) -> Result<Filter> {
    let refused =
        || parameters.wrong("shape", "a list of extents, lists of ascending axes, and at most one -1");
    let axes = |axes: &[Value]| -> Option<Range<usize>> {
        let axes: Option<Vec<usize>> = axes.iter().map(|axis| usize::try_from(axis.as_u64()?).ok()).collect();
        let axes = axes?;
        let first = axes.first().copied().unwrap_or(0);
        // Axes between these would need one element each, and could equally be named.
        let range = first..first.checked_add(axes.len())?;
        range.clone().eq(axes).then_some(range)
    };
    let extent = |value: &Value| match value {
        Value::Array(list) => axes(list).map(Extent::Axes),
        _ if value.as_i64() == Some(-1) => Some(Extent::Rest),
        _ => value.as_u64().filter(|extent| *extent > 0).map(Extent::Fixed),
    };
    let shape = parameters.get("shape").and_then(Value::as_array).ok_or_else(refused)?;
    let extents: Vec<Extent> = shape.iter().map(extent).collect::<Option<_>>().ok_or_else(refused)?;
    let mut named = extents.iter().filter_map(|extent| match extent {
        Extent::Axes(axes) if !axes.is_empty() => Some(axes.clone()),
        _ => None,
    });
    let in_order = named.try_fold(0, |end, axes| (axes.start >= end).then_some(axes.end)).is_some();
    if !in_order || extents.iter().filter(|extent| **extent == Extent::Rest).count() > 1 {
        return Err(refused());
    }
    Ok(Filter::Shape(Box::new(Reshape(extents))))
}

fn product(extents: &[u64]) -> Option<u64> {
    extents.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

impl Reshape {
    fn of(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let known = |extent: &Extent| match extent {
            Extent::Fixed(extent) => Some(*extent),
            Extent::Axes(axes) => product(shape.get(axes.clone())?),
            Extent::Rest => Some(1),
        };
        let mut stored: Vec<u64> = self.0.iter().map(known).collect::<Option<_>>()?;
        let (count, so_far) = (product(shape)?, product(&stored)?);
        if let Some(rest) = self.0.iter().position(|extent| *extent == Extent::Rest) {
            *stored.get_mut(rest)? = count.checked_div(so_far)?;
        }
        // Named axes must be at the same position in the stored shape as in the array, counted in elements.
        let stands = |(at, extent): (usize, &Extent)| match extent {
            Extent::Axes(axes) if !axes.is_empty() => {
                product(&stored[..at]) == product(&shape[..axes.start])
                    && product(&stored[at + 1..]) == product(&shape[axes.end..])
            }
            _ => true,
        };
        let holds = product(&stored)? == count && self.0.iter().enumerate().all(stands);
        holds.then_some(stored)
    }
}

impl Shape for Reshape {
    fn stored(&self, shape: &[u64]) -> Result<Vec<u64>> {
        self.of(shape)
            .ok_or_else(|| bad(format!("shape does not have as many elements as a chunk of shape {shape:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zarrow_array::{DataType, Number};

    fn stored(extents: Value, shape: &[u64]) -> Option<Vec<u64>> {
        let configuration = [("shape".to_owned(), extents)].into_iter().collect();
        let data_type = DataType::from(Number::Int8);
        let parsed = parse(&Parameters { configuration: &configuration, data_type: &data_type }).ok()?;
        let Filter::Shape(shaped) = parsed else { return None };
        shaped.stored(shape).ok()
    }

    #[test]
    fn shapes_are_those_of_the_specification() {
        assert_eq!(stored(json!([[0, 1], [2], 3]), &[100, 50, 64, 3]), Some(vec![5000, 64, 3]));
        assert_eq!(stored(json!([-1]), &[4, 6]), Some(vec![24]));
        assert_eq!(stored(json!([[0], 2, -1]), &[4, 6]), Some(vec![4, 2, 3]));
        assert_eq!(stored(json!([1, [0, 1], [], 1]), &[4, 6]), Some(vec![1, 24, 1, 1]));
    }

    #[test]
    fn what_does_not_hold_is_refused() {
        for (extents, shape) in [
            (json!([[1], [0]]), &[4, 6][..]),
            (json!([[1, 0], 10, [3, 4]]), &[4, 6]),
            (json!([[3, 4], 10, [0, 1]]), &[2, 5, 10, 3, 4]),
            (json!([-1, -1]), &[4, 6]),
            (json!([5, -1]), &[4, 6]),
            (json!([25]), &[4, 6]),
            (json!([0, -1]), &[4, 6]),
            (json!([6, [0]]), &[4, 6]),
            (json!([[7]]), &[4, 6]),
            (json!([u64::MAX, u64::MAX]), &[4, 6]),
            (json!("4"), &[4, 6]),
        ] {
            assert_eq!(stored(extents.clone(), shape), None, "{extents}");
        }
    }
}
