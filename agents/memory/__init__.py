"""Memory: episodic and semantic entries in SQLite, recalled by words and by meaning."""
