"""Layer 5, the agent cluster: the layer between the engine and the application."""
