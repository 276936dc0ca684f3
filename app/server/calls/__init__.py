"""What serves one API call: prompts to token ids, parameters, choices, answers and their streams."""
