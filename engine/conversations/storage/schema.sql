-- Version 1 of the conversation database (PRAGMA user_version). Later versions are migrations.

CREATE TABLE tree (
    id          TEXT PRIMARY KEY,
    title       TEXT NOT NULL,
    created_at  REAL NOT NULL,
    updated_at  REAL NOT NULL,
    archived    INTEGER NOT NULL DEFAULT 0,
    meta        TEXT
) WITHOUT ROWID;

-- `n` is explicit, because node_fts is keyed by it and VACUUM may renumber implicit rowids.
CREATE TABLE node (
    n           INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    parent_id   TEXT REFERENCES node (id),
    kind        TEXT NOT NULL
                CHECK (kind IN ('system', 'user', 'assistant', 'tool', 'note', 'summary')),
    text        TEXT NOT NULL,
    token_ids   BLOB,               -- little-endian u32
    logprobs    BLOB,               -- IEEE half floats, one per generated id
    topk        BLOB,               -- engine.conversations.blobs.pack_top
    status      TEXT NOT NULL CHECK (status IN ('streaming', 'done', 'stopped', 'error')),
    finish      TEXT,
    error       TEXT,
    model       TEXT,
    tokenizer   TEXT,               -- fingerprint that token_ids belong to
    template    TEXT,               -- user nodes: digest of the text token_ids were made from
    sampling    TEXT,               -- JSON
    seed        TEXT,               -- decimal: seeds exceed SQLite's signed 64 bits
    forked_from TEXT,
    fork_token  INTEGER,
    n_prompt    INTEGER,
    n_cached    INTEGER,
    n_gen       INTEGER,
    ttft_us     INTEGER,
    decode_us   INTEGER,
    label       TEXT,
    rating      INTEGER,
    pruned_at   REAL,
    writer      TEXT,               -- lease of the process that streams into this node
    created_at  REAL NOT NULL
);
CREATE INDEX node_children ON node (tree_id, parent_id);
CREATE INDEX node_streaming ON node (writer) WHERE status = 'streaming';
CREATE INDEX node_prompts ON node (created_at) WHERE kind = 'user';

-- The current child of each node; the parent of roots is ''.
CREATE TABLE checkout (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    parent_id   TEXT NOT NULL,
    child_id    TEXT NOT NULL REFERENCES node (id),
    PRIMARY KEY (tree_id, parent_id)
) WITHOUT ROWID;

-- Named branches, plus 'HEAD'.
CREATE TABLE head (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    name        TEXT NOT NULL,
    node_id     TEXT NOT NULL REFERENCES node (id),
    used_at     REAL NOT NULL,
    PRIMARY KEY (tree_id, name)
) WITHOUT ROWID;

-- Changes of pointers and flags with their inverses, as JSON lists of assignments (oplog.py).
CREATE TABLE oplog (
    n           INTEGER PRIMARY KEY,
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    at          REAL NOT NULL,
    name        TEXT NOT NULL,
    op          TEXT NOT NULL,
    undo        TEXT NOT NULL,
    undone      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX oplog_tree ON oplog (tree_id, n);

-- Finished nodes are immutable. Token ids of non-assistant nodes are a cache: set once, and changed
-- only with the tokenizer or the rendering.
CREATE TRIGGER node_immutable BEFORE UPDATE ON node
WHEN OLD.status <> 'streaming' AND (
    NEW.text IS NOT OLD.text
    OR NEW.status IS NOT OLD.status
    OR NEW.logprobs IS NOT OLD.logprobs
    OR (OLD.token_ids IS NOT NULL AND NEW.token_ids IS NOT OLD.token_ids AND (
        OLD.kind = 'assistant'
        OR (NEW.tokenizer IS OLD.tokenizer AND NEW.template IS OLD.template)))
)
BEGIN
    SELECT RAISE(ABORT, 'a finished node is immutable');
END;

-- Identity, parent and kind of a node never change, streaming or not.
CREATE TRIGGER node_fixed BEFORE UPDATE ON node
WHEN NEW.n IS NOT OLD.n OR NEW.id IS NOT OLD.id OR NEW.tree_id IS NOT OLD.tree_id
    OR NEW.parent_id IS NOT OLD.parent_id OR NEW.kind IS NOT OLD.kind
    OR NEW.created_at IS NOT OLD.created_at
BEGIN
    SELECT RAISE(ABORT, 'the place and kind of a node never change');
END;

-- Full-text index: each node is indexed once, when it has finished streaming.
CREATE VIRTUAL TABLE node_fts USING fts5 (
    text, content = 'node', content_rowid = 'n', tokenize = 'trigram'
);
CREATE TRIGGER node_fts_insert AFTER INSERT ON node WHEN NEW.status <> 'streaming'
BEGIN
    INSERT INTO node_fts (rowid, text) VALUES (NEW.n, NEW.text);
END;
CREATE TRIGGER node_fts_finish AFTER UPDATE OF status ON node
WHEN OLD.status = 'streaming' AND NEW.status <> 'streaming'
BEGIN
    INSERT INTO node_fts (rowid, text) VALUES (NEW.n, NEW.text);
END;
CREATE TRIGGER node_fts_delete AFTER DELETE ON node WHEN OLD.status <> 'streaming'
BEGIN
    INSERT INTO node_fts (node_fts, rowid, text) VALUES ('delete', OLD.n, OLD.text);
END;
