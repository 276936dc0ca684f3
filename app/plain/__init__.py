"""The line-mode chat: for pipes, screen readers and simple terminals."""
