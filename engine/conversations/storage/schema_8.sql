-- Version 8: the model that answers a branch.

-- The model that was chosen for the answers after a node, and for the node itself if it is an answer; '' stands
-- for the root. Where none was chosen, the model of the last answer goes on.
CREATE TABLE chosen_model (
    tree_id     TEXT NOT NULL REFERENCES tree (id),
    node_id     TEXT NOT NULL,
    name        TEXT NOT NULL,
    PRIMARY KEY (tree_id, node_id)
) WITHOUT ROWID;
