"""Requests as the engine holds them: the queue, sequences, rows of the batch, mailboxes."""
