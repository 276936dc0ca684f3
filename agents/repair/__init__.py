"""Self-healing: findings repaired by minimal patches that only tests accept."""
