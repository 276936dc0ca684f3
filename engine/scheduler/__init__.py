"""Which tokens the next step computes: admission, ordering, batch forming, speculation."""
