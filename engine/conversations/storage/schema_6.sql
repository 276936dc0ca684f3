-- Version 6: the slash commands that were typed, for the history of the prompt beside the messages.

CREATE TABLE command (
    n           INTEGER PRIMARY KEY,
    tree_id     TEXT NOT NULL,      -- the conversation in which it was typed, which need not be saved
    text        TEXT NOT NULL,
    created_at  REAL NOT NULL
);
CREATE INDEX command_tree ON command (tree_id);
