//! `StateCache`: the recurrent states of all layers, in slots.
//!
//! A slot holds the state of one sequence, or a checkpoint of one: for each recurrent layer the histories of its
//! convolution, `[panels, kernel - 1, 16]`, and the states of its heads, `[heads, panels, key_dim, 16]`; all f32 and
//! contiguous, so that a slot is copied, read and written as a whole.

use crate::arena::{Buffer, align_up};
use crate::error::KernelError;

/// Floats of one layer's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerState {
    /// Of its convolution.
    pub conv: usize,
    /// Of all heads' matrices.
    pub heads: usize,
}

/// Where a layer's state begins in a slot, in floats.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    conv: usize,
    heads: usize,
}

/// Recurrent states of all layers.
#[derive(Debug)]
pub struct StateCache {
    /// `[slots, slot_len]`
    states: Buffer<f32>,
    slots: usize,
    /// Floats of a slot.
    slot_len: usize,
    /// By layer; those without a state take no floats.
    places: Vec<Place>,
}

impl StateCache {
    /// `slots` slots for `layers`.
    ///
    /// # Errors
    /// So much memory cannot be reserved.
    pub fn new(layers: &[LayerState], slots: usize) -> Result<Self, KernelError> {
        let mut slot_len = 0;
        let aligned = |floats: usize| align_up(floats * size_of::<f32>()) / size_of::<f32>();
        let mut take = |floats: usize| {
            let start = slot_len;
            slot_len += aligned(floats);
            start
        };
        let places = layers
            .iter()
            .map(|layer| Place {
                conv: take(layer.conv),
                heads: take(layer.heads),
            })
            .collect();
        let floats = slot_len.checked_mul(slots).ok_or_else(|| {
            KernelError::Memory("The recurrent states would not fit in memory.".into())
        })?;
        Ok(Self {
            states: Buffer::new(floats)?,
            slots,
            slot_len,
            places,
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of a slot; 0 if no layer has a state.
    pub fn slot_bytes(&self) -> usize {
        self.slot_len * size_of::<f32>()
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> usize {
        self.states.len() * size_of::<f32>()
    }

    /// Where the histories of a layer's convolution begin. Accessing them is up to the caller.
    pub fn conv(&self, slot: usize, layer: usize) -> *mut f32 {
        self.at(slot, self.places[layer].conv)
    }

    /// Where the states of a layer's heads begin. Accessing them is up to the caller.
    pub fn heads(&self, slot: usize, layer: usize) -> *mut f32 {
        self.at(slot, self.places[layer].heads)
    }

    fn at(&self, slot: usize, offset: usize) -> *mut f32 {
        assert!(slot < self.slots, "state slot {slot} of {}", self.slots);
        self.states
            .ptr()
            .wrapping_add(slot * self.slot_len + offset)
    }

    /// Whether all slots exist.
    ///
    /// # Errors
    /// One does not.
    pub fn check_slots(&self, slots: &[i32]) -> Result<(), KernelError> {
        let known = |&slot: &i32| usize::try_from(slot).is_ok_and(|slot| slot < self.slots);
        match slots.iter().find(|slot| !known(slot)) {
            Some(slot) => Err(KernelError::step(format!(
                "There is no state slot {slot}: the pool has {}.",
                self.slots
            ))),
            None => Ok(()),
        }
    }

    /// Copy a slot to another.
    pub fn copy(&mut self, source: usize, target: usize) {
        let len = self.slot_len;
        let from = source * len..(source + 1) * len;
        self.states.as_mut_slice().copy_within(from, target * len);
    }

    /// The bytes of a slot.
    pub fn bytes_of(&mut self, slot: usize) -> &mut [u8] {
        let (start, len) = (self.at(slot, 0).cast::<u8>(), self.slot_bytes());
        // SAFETY: inside the buffer (checked), which is borrowed exclusively; any bytes are floats.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> StateCache {
        let layers = [
            LayerState { conv: 20, heads: 0 },
            LayerState::default(),
            LayerState {
                conv: 32,
                heads: 64,
            },
        ];
        StateCache::new(&layers, 3).unwrap()
    }

    #[test]
    fn layers_have_their_own_parts_of_a_slot() {
        let cache = cache();
        assert_eq!(cache.slot_bytes(), (32 + 32 + 64) * 4);
        let start = cache.conv(1, 0);
        assert_eq!(start, cache.conv(0, 0).wrapping_add(128));
        assert_eq!(cache.conv(1, 2), start.wrapping_add(32));
        assert_eq!(cache.heads(1, 2), start.wrapping_add(64));
    }

    #[test]
    fn slots_are_copied_whole() {
        let mut cache = cache();
        let bytes: Vec<u8> = (0..cache.slot_bytes()).map(|at| at as u8).collect();
        cache.bytes_of(0).copy_from_slice(&bytes);
        cache.copy(0, 2);
        assert_eq!(*cache.bytes_of(2), bytes);
        assert!(cache.bytes_of(1).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn unknown_slots_are_refused() {
        let cache = cache();
        cache.check_slots(&[0, 2]).unwrap();
        let refused = |slot| cache.check_slots(&[0, slot]).unwrap_err().to_string();
        assert!(refused(3).contains("slot 3: the pool has 3"));
        assert!(refused(-1).contains("slot -1"));
    }
}
