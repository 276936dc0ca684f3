"""What crosses the connection: request schemas, JSON, server-sent events, usage and error shapes."""
