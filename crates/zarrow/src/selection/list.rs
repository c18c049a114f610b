//! Positions of an axis in any order: sorted, so that those of one chunk follow one another.

use crate::error::Result;
use std::sync::Arc;
use zarrow_array::allocation;

/// Positions of an axis one by one, repeated as the caller likes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Rising.
    positions: Arc<Vec<u64>>,
    /// Where each goes; `None` where they were given in this order.
    places: Option<Arc<Vec<u64>>>,
}

impl List {
    /// Takes positions in the caller's order.
    ///
    /// # Errors
    /// [`zarrow_array::Error::OutOfMemory`].
    pub(super) fn new(positions: Vec<u64>) -> Result<List> {
        if positions.is_sorted() {
            return Ok(List { positions: Arc::new(positions), places: None });
        }
        // Equal positions keep their order: where they are written to, the last one stays.
        let mut pairs = allocation::collected(positions.iter().copied().zip(0u64..))?;
        pairs.sort_unstable();
        let (mut positions, mut places) = (positions, allocation::with_capacity(pairs.len())?);
        for (place, (position, number)) in positions.iter_mut().zip(&pairs) {
            *place = *position;
            places.push(*number);
        }
        Ok(List { positions: Arc::new(positions), places: Some(Arc::new(places)) })
    }

    /// How many positions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The positions, rising, and where each goes in the result: in their order, where that is not said.
    pub(crate) fn sorted(&self) -> (&[u64], Option<&[u64]>) {
        (&self.positions, self.places.as_ref().map(|places| places.as_slice()))
    }

    /// All positions, as the caller ordered them.
    #[must_use]
    pub fn positions(&self) -> Vec<u64> {
        let mut positions = self.positions.to_vec();
        for (place, position) in self.places.iter().flat_map(|places| places.iter()).zip(&*self.positions) {
            positions[*place as usize] = *position;
        }
        positions
    }

    /// The highest position.
    pub(super) fn last(&self) -> Option<u64> {
        self.positions.last().copied()
    }

    /// The position that the caller gave as the `number`th: found by looking at all, where they are not sorted.
    pub(super) fn position(&self, number: u64) -> u64 {
        let at = match &self.places {
            None => number as usize,
            Some(places) => places.iter().position(|place| *place == number).unwrap_or(0),
        };
        self.positions[at]
    }
}
