"""Model families: readers that describe a model's files layer by layer (`engine.models.spec`).

One file per family, one line per family in `registry`. docs/models.md says how to add one.
"""
