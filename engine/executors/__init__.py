"""Executors: independent implementations of the `Executor` protocol in `base.py`."""
