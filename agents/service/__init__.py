"""The service that front ends use: start runs, follow their events, answer approvals."""
