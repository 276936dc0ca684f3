"""Conversations: the tree of messages, its database, and the session that front ends use.

```
TUI, chat --plain → TreeSession ─┬─ conversations, messages, answers, branches, …   one object a noun
                                 ├─ LoadedConversations   the conversations in memory
                                 └─ Answering ─┬─ NewNodes → Store → WriterThread → SQLite (WAL)
                                               ├─ PromptBuilder: path of nodes → token ids
                                               └─ EngineClient:  submit, drain, cancel
```

`session.py` wires the objects of a front end, `storage/` has the database, `tree.py` the frozen records.
"""
