//! Errors of this crate.

use thiserror::Error;

/// An error of this crate.
///
/// The message is one complete sentence without the name of the variant, so that it can be shown to users as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// The model cannot be run: its spec or its weights are damaged or unsupported.
    #[error("{0}")]
    Model(String),
    /// The configuration is not possible on this machine or with this model.
    #[error("{0}")]
    Config(String),
    /// A step's arrays are inconsistent or exceed the executor's limits; nothing was computed.
    #[error("{0}")]
    Step(String),
    /// One entry of a step's plan is invalid; nothing was computed, and without that entry the step may run.
    #[error("{message}")]
    StepEntry {
        /// Index of the entry in the plan.
        entry: usize,
        /// The sentence.
        message: String,
    },
    /// Memory could not be allocated.
    #[error("{0}")]
    Memory(String),
    /// A file could not be written.
    #[error("{0}")]
    File(String),
    /// A worker panicked; the executor must not be used again.
    #[error("{0}")]
    Worker(String),
}

impl KernelError {
    pub(crate) fn model(message: impl Into<String>) -> Self {
        Self::Model(message.into())
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::Config(message.into())
    }

    pub(crate) fn step_entry(entry: usize, what: impl std::fmt::Display) -> Self {
        let message = format!("Step entry {entry} {what}.");
        Self::StepEntry { entry, message }
    }

    pub(crate) fn step(message: impl Into<String>) -> Self {
        Self::Step(message.into())
    }
}
