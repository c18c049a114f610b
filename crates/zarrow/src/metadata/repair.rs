//! Chunk grids that zarr-python 3.2 stored against the specification, read as zarr-python 3.4 repairs them.
//!
//! 1. A size of `true` is 1.
//! 2. A size of 0 is the smallest size: 1, or the inner chunk of a shard. No chunk was stored under a size of 0.
//! 3. A regular grid with the edges of some axes is a rectilinear grid.
//! 4. An edge of `4.0` is 4.
//!
//! All other values are checked by the reader of grids. A change of the document stores the repaired grid.
//!
//! Source: `zarr.core.metadata.repair` of zarr-python 3.4.

use serde_json::{Value, json};

/// Repairs the `chunk_grid` of a version 3 document with this `shape` and these `codecs`. Returns whether it changed.
pub(super) fn chunk_grid(grid: &mut Value, shape: &Value, codecs: &Value) -> bool {
    let is_regular = grid.get("name").is_some_and(|name| name == "regular");
    let key = if is_regular { "chunk_shape" } else { "chunk_shapes" };
    let Some(sizes) = grid.get_mut("configuration").and_then(|configuration| configuration.get_mut(key))
    else {
        return false;
    };
    let mut changed = is_regular && chunk_shape(sizes, shape, inner_chunk_shape(codecs));
    let Some(axes) = sizes.as_array_mut() else { return changed };
    let listed = axes.iter().filter(|axis| axis.is_array()).count();
    if is_regular && (listed == 0 || listed == axes.len()) {
        return changed;
    }
    // Rule 4, and rule 1 for edges.
    let edges = axes.iter_mut().filter_map(Value::as_array_mut).flatten();
    for edge in edges {
        let edge = match edge.as_array_mut().map(Vec::as_mut_slice) {
            Some([extent, _count]) => extent,
            Some(_) => continue,
            None => edge,
        };
        changed |= one(edge) || whole(edge);
    }
    if is_regular {
        let sizes = sizes.take();
        *grid =
            json!({ "name": "rectilinear", "configuration": { "kind": "inline", "chunk_shapes": sizes } });
        changed = true;
    }
    changed
}

/// Repairs the sizes of regular chunks by rules 1 and 2. `smallest` defaults to 1 on each axis.
/// Returns whether it changed any.
pub(super) fn chunk_shape(sizes: &mut Value, shape: &Value, smallest: Option<&Value>) -> bool {
    let ndim = shape.as_array().map(Vec::len);
    let Some(sizes) = sizes.as_array_mut().filter(|sizes| Some(sizes.len()) == ndim) else { return false };
    let mut changed = false;
    for (axis, size) in sizes.iter_mut().enumerate() {
        if *size == json!(0) || *size == json!(false) {
            let unit = smallest.and_then(|smallest| smallest.get(axis)).and_then(Value::as_u64);
            (*size, changed) = (json!(unit.unwrap_or(1)), true);
        }
        changed |= one(size);
    }
    changed
}

/// Rule 1 for the inner chunks of shards.
pub(super) fn inner_chunk_shape_of(configuration: &mut serde_json::Map<String, Value>) -> bool {
    let mut changed = false;
    for size in configuration.get_mut("chunk_shape").and_then(Value::as_array_mut).into_iter().flatten() {
        changed |= one(size);
    }
    changed
}

fn inner_chunk_shape(codecs: &Value) -> Option<&Value> {
    let sharding = codecs.as_array()?.iter().find(|codec| codec["name"] == "sharding_indexed")?;
    sharding.get("configuration")?.get("chunk_shape")
}

fn one(size: &mut Value) -> bool {
    let is_true = *size == json!(true);
    if is_true {
        *size = json!(1);
    }
    is_true
}

fn whole(edge: &mut Value) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match edge.as_f64().filter(|_| edge.is_f64()) {
        Some(extent) if extent.fract() == 0.0 && (1.0..=EXACT).contains(&extent) => {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked: exact and positive"
            )]
            let extent = extent as u64;
            *edge = json!(extent);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(sizes: Value, shape: Value, inner: Value) -> Value {
        let name = if sizes.as_array().is_some_and(|_| inner == "edges") { "rectilinear" } else { "regular" };
        let key = if name == "regular" { "chunk_shape" } else { "chunk_shapes" };
        let mut grid = json!({ "name": name, "configuration": { key: sizes } });
        let codecs = json!([{ "name": "sharding_indexed", "configuration": { "chunk_shape": inner } }]);
        chunk_grid(&mut grid, &shape, &codecs);
        let key = if grid["name"] == "regular" { "chunk_shape" } else { "chunk_shapes" };
        grid["configuration"][key].take()
    }

    #[test]
    fn each_rule_repairs_its_sizes() {
        assert_eq!(repaired(json!([true, 0]), json!([3, 0]), Value::Null), json!([1, 1]));
        assert_eq!(repaired(json!([0, 6]), json!([7, 6]), json!([4, 3])), json!([4, 6]));
        assert_eq!(repaired(json!([2, [5, 10.0, 5]]), json!([4, 20]), Value::Null), json!([2, [5, 10, 5]]));
        assert_eq!(
            repaired(json!([[4.0, [true, 3]], 2.0]), json!([7, 2]), json!("edges")),
            json!([[4, [1, 3]], 2.0])
        );
        for valid in [json!([2, 3]), json!([[2], [3]]), json!([-1, 2]), json!([2]), json!("2")] {
            assert_eq!(repaired(valid.clone(), json!([2, 3]), Value::Null), valid);
        }
        let mut configuration = json!({ "chunk_shape": [true, 2] });
        assert!(inner_chunk_shape_of(configuration.as_object_mut().unwrap()));
        assert_eq!(configuration, json!({ "chunk_shape": [1, 2] }));
    }
}
