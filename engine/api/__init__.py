"""Values shared by all layers: requests, snapshots, events, settings and errors."""
