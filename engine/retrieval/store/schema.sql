-- Ids are never reused: a citation that names a deleted chunk finds nothing, not another one.
CREATE TABLE collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,            -- the embedding model
    vector_type TEXT NOT NULL,      -- how vectors are stored
    dimensions INTEGER,             -- NULL before the first vector
    slots INTEGER NOT NULL DEFAULT 0,       -- rows of the vector file that belong to commits
    generation INTEGER NOT NULL DEFAULT 0,  -- counts commits that changed documents
    created REAL NOT NULL
) STRICT;

-- What the user asked to add, for refresh and watch.
CREATE TABLE source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id INTEGER NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,          -- absolute path of a file or folder, or an absolute glob pattern
    exclude TEXT NOT NULL,          -- JSON list of patterns
    attributes TEXT NOT NULL,       -- JSON object; given to each document of the source
    removed TEXT NOT NULL,          -- JSON list of paths that the user has removed since
    UNIQUE (collection_id, pattern)
) STRICT;

-- Of one path one document at most is `ready` or `failed`. A document is `partial` until its last chunk is
-- there; the one before it stays until then. A partial one that a crash has left is `stale`: it is not found,
-- but its vectors are taken over by the next run. The n chunks of a document have the ids
-- first_chunk .. first_chunk + n and the slots first_slot .. first_slot + n.
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id INTEGER NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('ready', 'failed', 'partial', 'stale')),
    reason TEXT,                    -- why it failed, or which parts could not be read
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    media_type TEXT,
    title TEXT,
    spans_of TEXT NOT NULL DEFAULT 'file',
    encoding TEXT NOT NULL DEFAULT 'utf-8',
    text TEXT,                      -- the extracted text; NULL where spans refer to the file
    added REAL NOT NULL,
    first_chunk INTEGER NOT NULL DEFAULT 0,
    first_slot INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX document_found ON document (collection_id, path) WHERE status IN ('ready', 'failed');
CREATE INDEX document_path ON document (collection_id, path);
CREATE INDEX document_hash ON document (collection_id, content_hash);

CREATE TABLE attribute (
    document_id INTEGER NOT NULL REFERENCES document (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'number', 'bool')),
    value ANY NOT NULL,
    PRIMARY KEY (document_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX attribute_value ON attribute (key, kind, value);

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL,   -- no key: a document's chunks are found and deleted by their range
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    section_start INTEGER NOT NULL,
    section_end INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    line INTEGER NOT NULL,
    page INTEGER,
    headings TEXT NOT NULL,         -- JSON list of titles, outermost first
    unspaced INTEGER NOT NULL,      -- whether it is in the trigram index, too
    text TEXT NOT NULL
) STRICT;

-- Slots whose vectors are still to be zeroed: written with the deletion, removed when the file is synced.
CREATE TABLE erasure (
    collection_id INTEGER NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
    first_slot INTEGER NOT NULL,
    slots INTEGER NOT NULL
) STRICT;

CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('next_chunk', 1), ('purge_pending', 0);
