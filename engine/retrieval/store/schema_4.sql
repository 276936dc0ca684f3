-- Whether a chunk begins inside of a table: it is embedded with its headings, the last of which is the header row.
ALTER TABLE chunk ADD COLUMN in_table INTEGER NOT NULL DEFAULT 0;
-- Spreadsheets and CSV are read again by the next refresh: their values, columns and header rows were lost.
UPDATE document SET content_hash = '' WHERE lower(path) LIKE '%.ods' OR lower(path) LIKE '%.xls'
    OR media_type IN ('text/csv', 'text/tab-separated-values',
                      'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet');
