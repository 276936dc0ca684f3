"""Output models: the schema of each agent's result. Grammars, validation and `--json` use the same models."""
