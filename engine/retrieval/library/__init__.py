"""What callers use: `Library` and `Collection`."""
