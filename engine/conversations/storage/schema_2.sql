-- Version 2: what was typed and queued, but not sent yet. A draft may belong to a conversation that is not
-- saved, because it has no message: tree_id refers to no row of tree then.

CREATE TABLE draft (
    tree_id     TEXT PRIMARY KEY,
    text        TEXT NOT NULL,
    queued      TEXT NOT NULL,      -- JSON: id of an answer → messages after it, oldest first
    updated_at  REAL NOT NULL
) WITHOUT ROWID;
