"""`pravaha bench`: throughput and latency of a model, and the share of the measured roofline."""
