-- Version 8: the model that answers a branch, and the reasoning of an answer apart from its text.

-- The model that was chosen for the answers after a node, and for the node itself if it is an answer; '' stands
-- for the root. Where none was chosen, the model of the last answer goes on.
CREATE TABLE chosen_model (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    node_id     TEXT NOT NULL,
    name        TEXT NOT NULL,
    PRIMARY KEY (tree_id, node_id)
) WITHOUT ROWID;

ALTER TABLE node ADD COLUMN reasoning TEXT;         -- assistant: its reasoning, without markers; NULL if it has none
ALTER TABLE node ADD COLUMN answer_at INTEGER;      -- assistant: characters of `text` before what follows the reasoning
ALTER TABLE node ADD COLUMN n_reasoning INTEGER;    -- assistant: tokens of the reasoning
ALTER TABLE node ADD COLUMN reasoning_us INTEGER;   -- assistant: from its first token to the end of the reasoning
