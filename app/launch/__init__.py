"""Coding agents on Pravāha's server: their settings, how they are changed and put back, and their start."""
