"""The server process: configuration, shared context, counters, connections and the drain."""
