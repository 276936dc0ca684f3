//! Recurrent mixers: gated short convolution, gated DeltaNet and Mamba2.
//!
//! A sequence's past is a state of fixed size instead of keys and values ([`states::StateCache`]): the last inputs of a causal
//! convolution ([`conv`]) and, for the latter two, one matrix per head ([`head`], [`scan`]). Tokens are processed in their order, so a
//! state has the same bits however its tokens were cut into chunks, and whatever else was in the step.

pub mod conv;
pub mod gate;
pub mod head;
pub mod scan;
pub mod states;

#[cfg(test)]
mod tests;
