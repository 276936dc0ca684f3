"""Appointments and letters of a small clinic."""
