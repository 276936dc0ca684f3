"""Opens engines, clients and conversation sessions from settings; drives a client from one thread."""
