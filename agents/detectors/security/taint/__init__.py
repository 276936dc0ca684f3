"""Source-to-sink analysis: which data of outsiders reaches which dangerous call.

`rules` reads the sinks and sanitizers (`../rules/*.yaml`), `data_flow` the sources and what passes data on
(`data_flow.yaml`). `value` is the abstract value and `evaluate` the evaluator of expressions; `python_values` and
`tree_values` add what names and calls mean in Python and in the languages that tree-sitter parses. `walk`
interprets one Python function, `program` joins functions and modules by their summaries. Other languages are
followed within one function.
"""
