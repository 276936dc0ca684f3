"""What this machine has, what Pravāha will use of it, what is missing and how to get it."""
