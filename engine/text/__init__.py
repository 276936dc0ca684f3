"""Text and token ids: tokenizers, chat templates, incremental detokenization, stop strings."""
