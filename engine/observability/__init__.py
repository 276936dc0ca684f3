"""Layer 7: counters, histograms and rates, exported to Prometheus and shown on the screen."""
