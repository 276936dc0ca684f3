"""The torch executor: any causal LM that transformers runs through its attention interface.

The only place where torch and transformers are imported, and only once this executor was chosen:
importing this package imports neither. `docs/torch.md` has the whole on one page.
"""
