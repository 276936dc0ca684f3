"""Conversations: the tree of messages, its database, and the session that front ends use.

```
TUI, chat --plain → TreeSession → Store → WriterThread → SQLite (WAL)
                        ├─ PromptBuilder: path of nodes → token ids
                        └─ EngineClient:  submit, drain, cancel
```

`tree.py` has the frozen records, `store.py` the database access, `session.py` the interface of front ends.
"""
