"""What the keys do, by group: `perform('tree', 'prune')` in the key table calls `TreeActions.prune`."""
