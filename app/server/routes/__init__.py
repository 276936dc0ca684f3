"""The endpoints, one module for each group: they read a request, call the engine and answer."""
