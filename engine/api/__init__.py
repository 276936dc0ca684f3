"""Values that every layer passes: requests, snapshots, events, settings, errors."""
