"""The line-mode chat: for pipes, screen readers and terminals that can do no more."""
