"""`pravaha agents`: list, show, check and run agents."""
