"""Vectors of a collection: one memory-mapped file, searched exactly by the native core."""
