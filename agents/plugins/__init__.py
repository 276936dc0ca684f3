"""What registers with the cluster: hook specifications, the built-in plugin, and discovery."""
