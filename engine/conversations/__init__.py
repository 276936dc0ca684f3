"""The conversation tree: its durable store and the session that grows it.

```
TUI, chat --plain → TreeSession → Store → WriterThread → SQLite (WAL)
                        ├─ PromptBuilder: path of nodes → token ids
                        └─ EngineClient:  submit, drain, cancel
```

`tree.py` has the frozen views, `store.py` the tables' only door, `session.py` what front ends use.
"""
