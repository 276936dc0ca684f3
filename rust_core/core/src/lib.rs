//! Block allocator, prefix trie and their statistics: pure Rust, no Python.
