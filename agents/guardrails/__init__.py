"""Guardrails: personal data, secrets, hidden characters, injections and exfiltration, for chat and agents."""
