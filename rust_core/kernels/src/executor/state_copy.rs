//! Copying recurrent states between steps: inside the pool, out of it and into it.

use super::Executor;
use crate::error::KernelError;

impl Executor {
    /// Bytes of a recurrent state over all layers, as `read_states` copies them; 0 for a model without.
    pub fn state_bytes(&self) -> usize {
        self.model.states.slot_bytes()
    }

    /// Copy slot `sources[i]` to slot `targets[i]`, in order.
    ///
    /// # Errors
    /// The lists differ in length or name a slot outside the pool; then nothing was copied.
    pub fn copy_states(&mut self, sources: &[i32], targets: &[i32]) -> Result<(), KernelError> {
        if sources.len() != targets.len() {
            return Err(KernelError::step(format!(
                "{} states cannot be copied to {} slots.",
                sources.len(),
                targets.len()
            )));
        }
        let states = &mut self.model.states;
        states.check_slots(sources)?;
        states.check_slots(targets)?;
        for (&source, &target) in sources.iter().zip(targets) {
            states.copy(source as usize, target as usize);
        }
        Ok(())
    }

    /// Copy each slot's bytes into its part of `bytes`: `[slots.len(), state_bytes]`.
    ///
    /// # Errors
    /// `bytes` has another length, or a slot is outside the pool; then nothing was copied.
    pub fn read_states(&mut self, slots: &[i32], bytes: &mut [u8]) -> Result<(), KernelError> {
        self.check_state_bytes(slots, bytes.len())?;
        let parts = bytes.chunks_exact_mut(self.state_bytes().max(1));
        for (&slot, part) in slots.iter().zip(parts) {
            part.copy_from_slice(self.model.states.bytes_of(slot as usize));
        }
        Ok(())
    }

    /// Copy each part of `bytes`, as written by `read_states`, into its slot.
    ///
    /// # Errors
    /// As `read_states`.
    pub fn write_states(&mut self, slots: &[i32], bytes: &[u8]) -> Result<(), KernelError> {
        self.check_state_bytes(slots, bytes.len())?;
        let parts = bytes.chunks_exact(self.state_bytes().max(1));
        for (&slot, part) in slots.iter().zip(parts) {
            let state = self.model.states.bytes_of(slot as usize);
            state.copy_from_slice(part);
        }
        Ok(())
    }

    fn check_state_bytes(&self, slots: &[i32], given: usize) -> Result<(), KernelError> {
        let wanted = slots.len() * self.state_bytes();
        if given != wanted {
            return Err(KernelError::step(format!(
                "{} states have {wanted} bytes and not {given}.",
                slots.len()
            )));
        }
        self.model.states.check_slots(slots)
    }
}
