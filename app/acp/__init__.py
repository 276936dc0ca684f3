"""Chat and agents for editors, over the Agent Client Protocol (ACP).

```
editor ──lines of JSON──▶ transport ─▶ requests ─▶ server ─┬─ session: one conversation, one turn at a time
                                                         └─ host: engine and agents, shared by all sessions
```

The process has one event loop. Engine and agents have threads of their own; what they report comes back to
the loop, where the conversations are.
"""
