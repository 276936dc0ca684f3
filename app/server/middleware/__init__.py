"""ASGI middleware around every route: authentication, host names, body limits, disconnects."""
