"""Source-to-sink analysis: which data of outsiders reaches which dangerous call.

`value` is the abstract value, `sources`, `sinks` and `sanitizers` are the tables, `evaluate` and `walk` interpret one
Python function, `program` joins functions and modules by their summaries. `tree_walk` does the same within one
function for the languages that tree-sitter parses.
"""
