"""Live requests inside the engine: request queue, sequences, rows of the batch, mailboxes."""
