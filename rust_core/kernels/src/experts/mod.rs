//! Experts: which of a layer's feed-forward networks each row uses.
//!
//! A router's logits choose a few experts for each row and weigh them ([`routing`]). The rows of a step that chose the same
//! expert are then multiplied together ([`rows`], [`gather`]), and the outputs of a row's experts are added ([`weighted_sum`]).

pub mod buffers;
pub mod gather;
pub mod routing;
pub mod rows;
pub mod weighted_sum;
