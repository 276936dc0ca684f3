-- Whether a chunk begins inside of a table: it is embedded with its headings, the last of which is the header row.
ALTER TABLE chunk ADD COLUMN in_table INTEGER NOT NULL DEFAULT 0;
-- Office documents, pages, mails and CSV are read again by the next refresh: their readers lost parts of them.
UPDATE document SET content_hash = '' WHERE lower(path) LIKE '%.xls'
    OR media_type IN ('text/csv', 'text/tab-separated-values', 'text/html', 'message/rfc822', 'application/epub+zip')
    OR media_type LIKE 'application/vnd.oasis.opendocument.%'
    OR media_type LIKE 'application/vnd.openxmlformats-officedocument.%';
