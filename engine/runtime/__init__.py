"""`AsyncPravahaEngine`, the thread that runs one model, and request intake, handles and lifecycle."""
