"""Text for the user interface: sanitised model output, byte sizes, titles of scheduling policies."""
