"""`EngineClient`, the interface of front ends to an engine, and its two transports."""
