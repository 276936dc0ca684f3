-- Version 7: the calls of tools that a node of the kind `tool` has the results of.

ALTER TABLE node ADD COLUMN calls TEXT;     -- JSON: `engine.conversations.made_calls`
