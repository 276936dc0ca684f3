"""The server that a launched client uses: where the one that would be started listens."""

import pytest

from app.commands.launched_server import address_of, planned_server
from app.settings.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "::1"])
def test_a_server_that_is_started_for_a_client_is_asked_where_it_listens(host):
    settings = Settings(host=host, port=8123)
    assert "8123" in address_of(settings)
    assert planned_server(settings).url == "http://127.0.0.1:8123"
