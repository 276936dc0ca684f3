//! Model formats and the native CPU executor.
