"""`pravaha bench`: what this machine does with this model, beside its measured roofline."""
