"""Code that a model writes: changes, fixes and tests, each by verified width (`agents.width`).

```
task, files ──▶ shown_files ──▶ prompt ──▶ widen ──▶ edits by program ──▶ diff
                                             ▲
                        parses, fits the file, no unknown names,
                        examples, the project's tests in a copy
```

The model writes whole functions in a fence; which lines that changes is found by `agents.edits`.
"""
