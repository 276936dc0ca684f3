"""Values that every package of the cluster passes: findings, specifications, events, budgets, errors."""
