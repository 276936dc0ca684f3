-- Version 3: which tokens of an answer are accepted draft tokens.

ALTER TABLE node ADD COLUMN drafted BLOB;   -- one bit per id of token_ids, lowest first; NULL if unknown
