"""Reports on the machine, the configuration that will be used, and missing parts with advice."""
