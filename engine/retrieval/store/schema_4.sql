-- Whether a chunk begins inside of a table: it is embedded with its headings, the last of which is the header row.
ALTER TABLE chunk ADD COLUMN in_table INTEGER NOT NULL DEFAULT 0;
