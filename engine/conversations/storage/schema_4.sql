-- Version 4: collections of documents that are attached to branches, and the passages that were found for
-- messages.

ALTER TABLE node ADD COLUMN context TEXT;       -- user: the text before the message in the prompt
ALTER TABLE node ADD COLUMN passages TEXT;      -- user: JSON of the passages in `context`; written by the source
ALTER TABLE node ADD COLUMN n_passages INTEGER; -- user and assistant: number of passages; NULL if none were sought
ALTER TABLE node ADD COLUMN citations TEXT;     -- assistant: JSON of the check of its citations
ALTER TABLE node ADD COLUMN checked_text TEXT;  -- assistant: its text as it is shown after the check

-- The collections that are attached from a node on, as a JSON list of names; '' stands for the root.
CREATE TABLE source (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    node_id     TEXT NOT NULL,
    names       TEXT NOT NULL,
    PRIMARY KEY (tree_id, node_id)
) WITHOUT ROWID;

-- What the model has read and how it was checked never changes.
CREATE TRIGGER node_passages_immutable BEFORE UPDATE ON node
WHEN (OLD.context IS NOT NULL AND NEW.context IS NOT OLD.context)
    OR (OLD.passages IS NOT NULL AND NEW.passages IS NOT OLD.passages)
    OR (OLD.citations IS NOT NULL AND NEW.citations IS NOT OLD.citations)
    OR (OLD.checked_text IS NOT NULL AND NEW.checked_text IS NOT OLD.checked_text)
BEGIN
    SELECT RAISE(ABORT, 'the passages of a message never change');
END;
