"""The Rust core's Python face (`rust_core/py`). A test checks this file against the module."""
