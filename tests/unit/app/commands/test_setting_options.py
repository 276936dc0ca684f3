"""Options of settings on the command line."""

from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from app.commands.setting_options import setting_options


def given(*arguments):
    """What a command with the options gets."""
    got = SimpleNamespace(flags=None)
    cli = typer.Typer()

    @cli.command()
    @setting_options("server", "agents")
    def command(*, flags: dict) -> None:
        got.flags = flags

    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return got.flags


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ((), {}),
        (("--port", "0"), {"port": 0}),
        (("--cors-origin", "https://a"), {"cors_origin": "https://a"}),
        (
            ("--cors-origin", "https://a", "--cors-origin", "https://b,https://c"),
            {"cors_origin": "https://a,https://b,https://c"},
        ),
        (("--allowed-hosts", "a", "--allowed-hosts", "b"), {"allowed_hosts": "a,b"}),
        (
            ("--allow", "shell: a, b", "--allow", "read: *"),
            {"allow": "shell: a, b;read: *"},
        ),
        (("--http-domains", "a.org b.org"), {"http_domains": "a.org b.org"}),
    ],
)
def test_a_list_may_be_given_in_several_options(arguments, flags):
    assert given(*arguments) == flags
