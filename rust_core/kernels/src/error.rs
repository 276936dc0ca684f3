//! What can go wrong, each with one sentence for the person who caused it.

use thiserror::Error;

/// Everything this crate refuses or fails at.
///
/// The message is a whole sentence without the kind's name, so that a face can show it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// The model cannot be run: its spec or its weights are damaged or unsupported.
    #[error("{0}")]
    Model(String),
    /// The executor was configured with something this machine or model cannot do.
    #[error("{0}")]
    Config(String),
    /// A step's arrays contradict each other or the executor's limits; nothing was computed.
    #[error("{0}")]
    Step(String),
    /// Memory could not be had.
    #[error("{0}")]
    Memory(String),
    /// A worker panicked: the executor must not be used any more.
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

    pub(crate) fn step(message: impl Into<String>) -> Self {
        Self::Step(message.into())
    }
}
