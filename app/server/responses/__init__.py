"""What the server keeps of the Responses API: responses, conversations and their items."""
