"""The pixel figure: text files of frames, their loader, and half-block rendering."""
