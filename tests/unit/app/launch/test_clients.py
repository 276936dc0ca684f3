"""The settings of each client: new ones, those merged into others' settings, and where they are."""

import json
import tomllib
from pathlib import Path

import pytest

from app.launch.clients import CLIENTS, Server, environment_of
from app.launch.errors import SettingsError

SERVER = Server("http://127.0.0.1:8000", "NAME")
WITH_KEY = Server("https://example.org", "NAME", "sk-1")
WRITTEN = {name: one for name, one in CLIENTS.items() if one.new_text is not None}

FOREIGN = {
    "codex": """\
# my settings
model = "gpt"     # the big one
approval_policy = "never"

[model_providers.other]
name = "Other"
base_url = "https://example.org/v1"

[features]
web_search = true  # keep
""",
    "vibe": """\
# mine
active_model = "devstral"
vim_keybindings = true

[[providers]]
name = "mistral"  # theirs
api_base = "https://example.org/v1"

[[models]]
name = "devstral"
provider = "mistral"
alias = "devstral"

[tools.bash]
permission = "ask"
""",
    "opencode": json.dumps(
        {
            "theme": "dark",
            "provider": {"other": {"npm": "x", "models": {"a": {}}}},
            "model": "other/a",
            "mcp": {"files": {"type": "local", "command": ["x"]}},
        },
        indent=4,
    ),
}


def parsed(name, text):
    return json.loads(text) if name == "opencode" else tomllib.loads(text)


def test_the_clients_are_those_of_the_documentation():
    assert list(CLIENTS) == ["aider", "claude", "codex", "mini-swe-agent", "opencode", "vibe"]
    assert set(WRITTEN) == set(FOREIGN)


@pytest.mark.parametrize("name", WRITTEN)
def test_settings_are_written_where_there_are_none(name):
    found = parsed(name, WRITTEN[name].new_text("", SERVER, "file"))
    assert "http://127.0.0.1:8000/v1" in json.dumps(found)
    assert "NAME" in json.dumps(found)
    assert "sk-" not in json.dumps(found)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_there_stays(name):
    before, after = FOREIGN[name], WRITTEN[name].new_text(FOREIGN[name], SERVER, "file")
    old, new = parsed(name, before), parsed(name, after)
    ours = {"model", "model_provider", "active_model", "model_providers", "features", "providers"}
    ours |= {"models", "provider", "$schema"}
    assert {key: value for key, value in old.items() if key not in ours} == {
        key: value for key, value in new.items() if key not in ours
    }
    for comment in ("# my settings", "# the big one", "# keep", "# mine", "# theirs"):
        assert (comment in after) is (comment in before)
    if name == "codex":
        assert new["model_providers"]["other"] == old["model_providers"]["other"]
        assert new["features"] == {"web_search": True, "multi_agent": False, "goals": False}
        assert (new["model"], new["model_provider"]) == ("NAME", "pravaha")
    if name == "vibe":
        assert [one["name"] for one in new["providers"]] == ["mistral", "pravaha"]
        assert [one["alias"] for one in new["models"]] == ["devstral", "pravaha"]
        assert new["active_model"] == "pravaha"
    if name == "opencode":
        assert new["provider"]["other"] == old["provider"]["other"]
        assert new["model"] == "pravaha/NAME"
        assert '\n    "theme"' in after


@pytest.mark.parametrize("name", WRITTEN)
def test_a_second_change_changes_nothing_and_another_model_replaces_the_first(name):
    change = WRITTEN[name].new_text
    once = change(FOREIGN[name], SERVER, "file")
    assert change(once, SERVER, "file") == once
    other = parsed(name, change(once, Server("http://127.0.0.1:9000", "OTHER"), "file"))
    assert "http://127.0.0.1:8000" not in json.dumps(other)
    if name == "vibe":
        assert [one["name"] for one in other["models"]] == ["devstral", "OTHER"]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_key_is_named_but_never_written(name):
    text = WRITTEN[name].new_text("", WITH_KEY, "file")
    assert "PRAVAHA_API_KEY" in text
    assert "sk-1" not in text
    assert environment_of(WRITTEN[name], WITH_KEY, {})["PRAVAHA_API_KEY"] == "sk-1"


@pytest.mark.parametrize("name", CLIENTS)
def test_no_key_is_among_the_arguments_that_all_users_of_a_machine_can_list(name):
    assert "sk-1" not in " ".join(CLIENTS[name].arguments(WITH_KEY))
    assert "sk-1" in CLIENTS[name].environment(WITH_KEY).values()


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize(
    "text", ["{", "= 3", "[[", "\0", "[1", '"text"', "providers = 3\nmodel_providers = 4"]
)
def test_broken_settings_are_refused_in_a_sentence(name, text):
    with pytest.raises(SettingsError, match=r"config") as error:
        WRITTEN[name].new_text(text, SERVER, "config")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vibe", "providers = 3"),
        ("vibe", "models = [1, 2]"),
        ("vibe", "[providers]\nname = 'x'"),
        ("codex", "model_providers = 4"),
        ("codex", "[[model_providers]]\nname = 'x'"),
        ("codex", "[model_providers]\npravaha = 1"),
        ("opencode", '{"provider": []}'),
        ("opencode", '{"provider": {"pravaha": 1}}'),
    ],
)
def test_settings_with_something_else_in_our_place_are_refused(name, text):
    with pytest.raises(SettingsError, match="cannot be changed"):
        WRITTEN[name].new_text(text, SERVER, "file")


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "theme": "dark"\n}',
        '{"theme": "dark", /* mine */ "a": 1}',
        '{"theme": "dark",}',
    ],
)
def test_comments_in_json_are_not_lost(text):
    with pytest.raises(SettingsError, match="comments"):
        CLIENTS["opencode"].new_text(text, SERVER, "opencode.jsonc")


def test_what_looks_like_a_comment_in_a_string_is_none():
    text = '{"theme": "http://a/*b*/,}"}'
    found = json.loads(CLIENTS["opencode"].new_text(text, SERVER, "file"))
    assert found["theme"] == "http://a/*b*/,}"


def test_line_ends_of_toml_stay():
    text = CLIENTS["codex"].new_text("# mine\r\na = 1\r\n", SERVER, "file")
    assert text.startswith("# mine\r\na = 1\r\n")


def test_settings_are_found_by_the_environment(tmp_path):
    home = {"HOME": str(tmp_path)}
    config = {**home, "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert CLIENTS["codex"].path(home) == tmp_path / ".codex/config.toml"
    assert CLIENTS["codex"].path({**home, "CODEX_HOME": "/x"}) == Path("/x/config.toml")
    assert CLIENTS["vibe"].path(home) == tmp_path / ".vibe/config.toml"
    assert CLIENTS["vibe"].path({**home, "VIBE_HOME": "/y"}) == Path("/y/config.toml")
    assert CLIENTS["opencode"].path(home) == tmp_path / ".config/opencode/opencode.json"
    assert CLIENTS["opencode"].path(config) == tmp_path / "xdg/opencode/opencode.json"
    assert (
        CLIENTS["opencode"].path({**home, "XDG_CONFIG_HOME": "relative"}).is_relative_to(tmp_path)
    )
    (tmp_path / "xdg/opencode").mkdir(parents=True)
    (tmp_path / "xdg/opencode/opencode.jsonc").write_text("{}")
    assert CLIENTS["opencode"].path(config).name == "opencode.jsonc"


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_is_told_where_the_server_is(name):
    client = CLIENTS[name]
    told = [
        *client.environment(SERVER).values(),
        *client.arguments(SERVER),
        client.new_text("", SERVER, "file") if client.new_text else "",
    ]
    assert any("http://127.0.0.1:8000" in one for one in told)
