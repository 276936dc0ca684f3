CREATE TABLE file (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    filename TEXT NOT NULL,
    stored_as TEXT NOT NULL,
    purpose TEXT NOT NULL,
    size INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
);
CREATE TABLE vector_store (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    expires_days INTEGER,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'expired'))
);
CREATE TABLE store_file (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    store_id TEXT NOT NULL REFERENCES vector_store (id) ON DELETE CASCADE,
    file_id TEXT NOT NULL REFERENCES file (id),
    state TEXT NOT NULL
        CHECK (state IN ('in_progress', 'completed', 'failed', 'cancelled')),
    attributes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    error_code TEXT,
    error TEXT,
    usage_bytes INTEGER NOT NULL DEFAULT 0,
    batch_id TEXT,
    UNIQUE (store_id, file_id)
);
CREATE INDEX store_file_by_state ON store_file (state, number);
CREATE INDEX store_file_by_file ON store_file (file_id);
CREATE INDEX store_file_by_batch ON store_file (batch_id, number);
CREATE TABLE file_batch (
    id TEXT PRIMARY KEY,
    store_id TEXT NOT NULL REFERENCES vector_store (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    cancelled INTEGER NOT NULL DEFAULT 0
);
