"""Measures of a model: items with one right answer each, asked with the agents' prompts and grammars."""
