"""Text that people read: sanitised output of models, byte sizes and titles of scheduling policies."""
