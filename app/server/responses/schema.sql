CREATE TABLE response (
    id TEXT PRIMARY KEY,
    previous TEXT,
    used REAL NOT NULL,
    size INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX response_by_use ON response (used);
CREATE TABLE conversation (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    metadata TEXT NOT NULL
);
CREATE TABLE item (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    side TEXT NOT NULL CHECK (side IN ('input', 'output', 'conversation')),
    body TEXT NOT NULL
);
CREATE INDEX item_by_id ON item (id);
CREATE INDEX item_by_owner ON item (owner, side, number);
