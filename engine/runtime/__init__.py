"""`AsyncPravahaEngine`: the thread that serves one model, and everything around its steps."""
