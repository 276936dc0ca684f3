"""Tools that agents and chats may call: asynchronous, bounded, cancellable, with typed input and output."""
