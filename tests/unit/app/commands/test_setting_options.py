"""Options of settings on the command line."""

from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from app.commands.setting_options import setting_options


def given(*arguments, groups=("server", "agents")):
    """What a command with the options gets."""
    got = SimpleNamespace(flags=None)
    cli = typer.Typer()

    @cli.command()
    @setting_options(*groups)
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


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (("--model", "a"), {"model": "a"}),
        (("-m", "a", "--model", "b"), {"model": "a", "further_models": "b"}),
        (
            ("--model", "a", "--further-models", "c; d", "--model", "./b 2.gguf"),
            {"model": "a", "further_models": "./b 2.gguf;c; d"},
        ),
    ],
)
def test_the_model_may_be_given_several_times_where_several_are_used(arguments, flags):
    assert given(*arguments, groups=("engine", "models")) == flags


def test_a_command_of_one_model_refuses_a_second():
    cli = typer.Typer()

    @cli.command()
    @setting_options("engine")
    def command(*, flags: dict) -> None:
        raise AssertionError(flags)

    result = CliRunner().invoke(cli, ["--model", "a", "--model", "b"])
    assert result.exit_code == 2
    assert "several times" in result.output
