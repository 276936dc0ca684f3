"""Settings: definitions, help texts and sources, and the preferences that the screen saves."""
