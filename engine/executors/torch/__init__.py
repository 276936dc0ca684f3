"""The torch executor: runs any causal LM that supports transformers' attention interface.

Only modules of this package import torch and transformers, and only after this executor was selected;
importing the package itself imports neither. See `docs/torch.md`.
"""
