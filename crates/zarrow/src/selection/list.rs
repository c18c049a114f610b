//! Positions of an axis in any order: sorted, so that positions in one chunk are adjacent.

use crate::error::Result;
use std::sync::Arc;
use zarrow_array::allocation;

/// Individual positions of an axis, which may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Ascending positions.
    positions: Arc<Vec<u64>>,
    /// Index of each in the result; `None` if they were given in ascending order.
    places: Option<Arc<Vec<u64>>>,
}

impl List {
    /// Takes positions in the caller's order.
    pub(super) fn new(positions: Vec<u64>) -> Result<List> {
        if positions.is_sorted() {
            return Ok(List { positions: Arc::new(positions), places: None });
        }
        // Equal positions keep their order: in a write the last one wins.
        let mut pairs = allocation::collected(positions.iter().copied().zip(0u64..))?;
        pairs.sort_unstable();
        let (mut positions, mut places) = (positions, allocation::with_capacity(pairs.len())?);
        for (place, (position, number)) in positions.iter_mut().zip(&pairs) {
            *place = *position;
            places.push(*number);
        }
        Ok(List { positions: Arc::new(positions), places: Some(Arc::new(places)) })
    }

    /// Returns the number of positions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the ascending positions, and the index of each in the result (`None`: the same order).
    pub(crate) fn sorted(&self) -> (&[u64], Option<&[u64]>) {
        (&self.positions, self.places.as_ref().map(|places| places.as_slice()))
    }

    /// Returns all positions in the caller's order.
    #[must_use]
    pub fn positions(&self) -> Vec<u64> {
        let mut positions = self.positions.to_vec();
        for (place, position) in self.places.iter().flat_map(|places| places.iter()).zip(&*self.positions) {
            positions[*place as usize] = *position;
        }
        positions
    }

    /// Returns the highest position.
    pub(super) fn last(&self) -> Option<u64> {
        self.positions.last().copied()
    }

    /// Returns the caller's position with this `number`; if they were not sorted, this is a linear search.
    pub(super) fn position(&self, number: u64) -> u64 {
        let at = match &self.places {
            None => number as usize,
            Some(places) => places.iter().position(|place| *place == number).unwrap_or(0),
        };
        self.positions[at]
    }
}
