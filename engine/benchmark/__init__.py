"""Self-benchmarks of the engine and this machine's measured roofline."""
