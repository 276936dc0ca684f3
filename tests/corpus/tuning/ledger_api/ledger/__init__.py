"""A small bookkeeping service: accounts, entries and monthly statements."""
