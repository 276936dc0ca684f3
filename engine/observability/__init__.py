"""Layer 7: counters, histograms and what they say to Prometheus and to the screen."""
