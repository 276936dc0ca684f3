"""Images in chats: opening them, and which way a model reads them."""
