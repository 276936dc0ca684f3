-- Vector files are rewritten to get rid of deleted rows; each has a name of its own.
ALTER TABLE collection ADD COLUMN rewrites INTEGER NOT NULL DEFAULT 0;
-- Vectors were lost and are being computed anew: searches by meaning and changes are refused.
ALTER TABLE collection ADD COLUMN vectors_lost INTEGER NOT NULL DEFAULT 0;
-- JSON list of the mount points in or around a source. What is not mounted cannot be reached, and is kept.
ALTER TABLE source ADD COLUMN mounts TEXT NOT NULL DEFAULT '[]';
