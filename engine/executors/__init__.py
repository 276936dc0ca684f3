"""Executors: equal siblings behind the protocol of `base.py`."""
