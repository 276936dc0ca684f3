"""Where settings come from, which source wins, and how errors name it."""

from pathlib import Path

import pytest

from agents.guardrails.detection import Action, Kind
from app.settings.errors import ConfigurationError
from app.settings.options import DEFAULT_SYSTEM
from app.settings.settings import ROWS, Settings
from app.settings.sources import FILE_NAME, load_settings
from engine.api.config import EngineConfig
from engine.api.generation_defaults import GenerationDefaults
from engine.retrieval.answering.evidence import MIN_EVIDENCE


@pytest.fixture
def folders(tmp_path):
    here, user = tmp_path / "here", tmp_path / "user"
    here.mkdir()
    user.mkdir()
    return here, user


def load(folders, *, flags=None, here="", user="", **environ):
    (folders[0] / FILE_NAME).write_text(here)
    (folders[1] / FILE_NAME).write_text(user)
    environ = {f"PRAVAHA_{k.upper()}": v for k, v in environ.items()}
    environ["PRAVAHA_CONFIG_DIR"] = str(folders[1])
    return load_settings(flags, environ=environ, folder=folders[0])


def test_flags_win_over_environment_over_files_over_defaults(folders):
    sources = {"flags": {"threads": 1}, "threads": "2", "here": "threads = 3", "user": "threads=4"}
    seen = []
    for name in ("flags", "threads", "here", "user", None):
        seen.append(load(folders, **sources).threads)
        sources.pop(name, None)
    assert seen == [1, 2, 3, 4, None]


def test_the_two_files_are_merged_setting_by_setting(folders):
    settings = load(folders, here="port = 1", user="port = 2\ntheme = 'x'")
    assert (settings.port, settings.theme) == (1, "x")


def test_a_flag_that_was_not_given_hides_nothing(folders):
    assert load(folders, flags={"threads": None}, threads="2").threads == 2


def test_an_empty_variable_is_no_value(folders):
    assert load(folders, threads="").threads is None


@pytest.mark.parametrize(
    ("sources", "sentence"),
    [
        ({"flags": {"threads": 0}}, "--threads is 0 but should be greater than or equal to 1."),
        ({"port": "x"}, "PRAVAHA_PORT is 'x' but should be a valid integer"),
        ({"kv_cache": "lots"}, "PRAVAHA_KV_CACHE is 'lots' but should be a size such as 512MiB"),
        ({"here": "top_p = 2"}, "here/pravaha.toml: top_p is 2 but should be less than"),
        ({"user": "top_p = 'x'"}, "user/pravaha.toml: top_p is 'x' but should be a valid number"),
        ({"threds": "1"}, "PRAVAHA_THREDS is not a setting: did you mean PRAVAHA_THREADS?"),
        ({"here": "thredas = 1"}, "thredas is not a setting: did you mean threads?"),
        ({"here": "zzzz = 1"}, "zzzz is not a setting."),
        ({"here": "threads ="}, "here/pravaha.toml can't be read"),
        ({"here": "config_dir = 'x'"}, "set PRAVAHA_CONFIG_DIR instead"),
        ({"attach": "ftp://x"}, "PRAVAHA_ATTACH is 'ftp://x' but should be a URL such as http://"),
        ({"dispatch": "sse"}, "'auto', 'amx', 'avx512', 'avxvnni', 'avx2' or 'portable'"),
    ],
)
def test_an_error_is_one_sentence_that_names_its_source(folders, sources, sentence):
    with pytest.raises(ConfigurationError) as caught:
        load(folders, **sources)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value).strip() or "can't be read" in sentence


def test_a_key_is_never_shown(folders):
    settings = load(folders, api_key="s3cret")
    assert "s3cret" not in repr(settings)
    assert settings.api_key.get_secret_value() == "s3cret"
    assert settings.plain_api_key == "s3cret"
    with pytest.raises(ConfigurationError) as caught:
        load(folders, here="api_key = ['s3cret']")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("sources", [{}, {"api_key": ""}])
def test_without_a_key_none_is_sent(folders, sources):
    assert load(folders, **sources).plain_api_key is None


def test_lists_are_written_with_commas_or_as_lists(folders):
    assert load(folders, allowed_hosts="a, b").allowed_hosts == ("a", "b")
    assert load(folders, here="allowed_hosts = ['a', 'b']").allowed_hosts == ("a", "b")


def test_origins_are_checked_and_are_not_for_a_project_to_decide(folders):
    assert load(folders, cors_origin="https://A.example/ *").cors_origin == (
        "https://a.example",
        "*",
    )
    with pytest.raises(
        ConfigurationError, match="PRAVAHA_CORS_ORIGIN is 'x' but should be an origin"
    ):
        load(folders, cors_origin="x")
    with pytest.raises(ConfigurationError, match="not for a project to decide"):
        load(folders, here="cors_origin = ['https://a.example']")


def test_the_key_map_is_a_table_whose_names_may_hold_dots(folders):
    written = '[keymap]\nquit = "f10"\npane.kv = "f4"\n"pane.stats" = "f6"'
    assert load(folders, user=written).keymap == {
        "quit": "f10",
        "pane.kv": "f4",
        "pane.stats": "f6",
    }
    with pytest.raises(ConfigurationError, match=r"keymap"):
        load(folders, user="[keymap]\nquit = 3")


def test_folders_may_be_moved_one_by_one(folders, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load(folders, data_dir="~/d", cache_dir=str(tmp_path / "c"))
    assert settings.conversations == tmp_path / "d" / "conversations.db"
    assert settings.models == tmp_path / "c" / "models"
    assert settings.themes == folders[1] / "themes"


def test_every_setting_has_a_row():
    assert set(ROWS) == set(Settings.model_fields)


def test_engine_settings_reach_the_engine(folders):
    """Each engine option changes its field of `EngineConfig`, and no field is out of reach."""
    flags = {
        "ctx": 99,
        "kv_cache": "64MiB",
        "weights": "q4",
        "kv_dtype": "f32",
        "block_size": 16,
        "threads": 3,
        "dispatch": "portable",
        "max_num_seqs": 5,
        "max_num_batched_tokens": 77,
        "max_queue": 9,
        "max_hold_s": 7.5,
        "state_slots": 11,
        "state_interval": 512,
        "executor": "torch",
        "device": "cpu",
        "dtype": "bf16",
        "attention": "reference",
        "cuda_graphs": True,
        "dummy_weights": True,
        "swap_bytes": "3MiB",
        "weight_cache_bytes": "5GiB",
        "cache_dir": "/somewhere",
    }
    assert load(folders, flags=flags).engine_config(Path("m.gguf"), "m") == EngineConfig(
        model=Path("m.gguf"),
        name="m",
        max_num_seqs=5,
        max_num_batched_tokens=77,
        max_model_len=99,
        block_size=16,
        kv_cache_bytes=64 * 1024**2,
        weights="q4",
        kv_dtype="f32",
        max_queue=9,
        max_hold_s=7.5,
        state_slots=11,
        state_interval=512,
        threads=3,
        dispatch="portable",
        executor="torch",
        device="cpu",
        dtype="bf16",
        attention="reference",
        cuda_graphs=True,
        dummy_weights=True,
        swap_bytes=3 * 2**20,
        swap_dir=Path("/somewhere/swap"),
        weight_cache_bytes=5 * 2**30,
        weight_cache_dir=Path("/somewhere/weights"),
    )


def test_sampling_settings_reach_the_answers(folders):
    flags = {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.6,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "dry_multiplier": 0.4,
        "dry_base": 1.5,
        "dry_allowed_length": 4,
        "dry_penalty_last_n": 256,
        "seed": 2**64 - 1,
        "max_tokens": 12,
    }
    sampling = load(folders, flags=flags).sampling()
    assert {name: getattr(sampling.params, name) for name in flags} == flags
    assert sampling.chosen == frozenset(flags)


@pytest.mark.parametrize(("seed", "used"), [(-1, None), (-2, 2**64 - 2), (-(2**63), 2**63), (0, 0)])
def test_a_seed_of_minus_one_is_a_new_one_each_time(folders, seed, used):
    assert load(folders, flags={"seed": seed}).sampling().params.seed == used


def test_a_limit_of_minus_one_is_none(folders):
    sampling = load(folders, flags={"max_tokens": -1}).sampling()
    assert sampling.params.max_tokens is None
    assert "max_tokens" in sampling.chosen


def test_a_limit_of_zero_is_refused(folders):
    with pytest.raises(ConfigurationError, match="should be at least 1, or -1 for the rest"):
        load(folders, flags={"max_tokens": 0})


def test_what_is_not_set_is_left_to_the_model(folders):
    model = GenerationDefaults(temperature=0.9, repetition_penalty=1.3)
    params = load(folders, here="temperature = 0.2").sampling().for_model(model)
    assert (params.temperature, params.repetition_penalty, params.top_p) == (0.2, 1.3, 0.9)
    params = load(folders, repetition_penalty="1").sampling().for_model(model)
    assert (params.temperature, params.repetition_penalty) == (0.9, 1.0)


def test_an_empty_system_prompt_leaves_it_to_the_template(folders):
    assert load(folders).system == DEFAULT_SYSTEM
    assert load(folders, flags={"system": ""}).system is None
    assert load(folders, here="system = ''").system is None


@pytest.mark.parametrize(("flag", "expected"), [(None, True), (False, False), (True, True)])
def test_prefix_caching_can_be_switched_off(folders, flag, expected):
    settings = load(folders, flags={"prefix_caching": flag})
    assert settings.engine_config(Path("model"), "model").prefix_caching is expected


def test_the_swap_tier_needs_prefix_caching(folders):
    settings = load(folders, flags={"swap_bytes": "64MiB", "cache_dir": "/somewhere"})
    config = settings.engine_config(Path("model"), "model")
    assert (config.swap_bytes, config.swap_dir) == (64 << 20, Path("/somewhere/swap"))
    assert load(folders).engine_config(Path("model"), "model").swap_bytes == 2 << 30
    off = load(folders, flags={"prefix_caching": False})
    assert off.engine_config(Path("model"), "model").swap_bytes == 0
    assert load(folders, swap_bytes="0").swap_bytes == 0
    with pytest.raises(ConfigurationError, match="--swap-bytes is '1GiB' but should be 0 without"):
        load(folders, flags={"swap_bytes": "1GiB", "prefix_caching": False})


def test_the_guardrails_are_a_table(folders):
    written = (
        '[guardrails]\nmode = "redact"\nblocklist = ["secret plan"]\nallowed_hosts = ["img.example"]\n'
        '[guardrails.output]\nemail = "redact"\n[memory]\nepisodes = "never"'
    )
    settings = load(folders, user=written)
    assert (settings.guardrails_mode, settings.memory_episodes) == ("redact", "never")
    policy = settings.guardrail_policy()
    assert policy.blocklist == ("secret plan",)
    assert policy.output_actions[Kind.EMAIL] is Action.REDACT
    assert policy.input_actions[Kind.EMAIL] is Action.FLAG
    assert policy.allowed_hosts == ("img.example",)


def test_a_mode_decides_what_no_setting_names(folders):
    checked = load(folders).guardrail_policy()
    assert checked.input_actions[Kind.CARD] is Action.ALLOW
    assert checked.output_actions[Kind.EXFILTRATION] is Action.REDACT
    off = load(folders, user='[guardrails]\nmode = "off"').guardrail_policy()
    assert set(off.output_actions.values()) == {Action.ALLOW}


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            "[guardrails]\nmod = 1",
            r"guardrails\.mod is not a setting: did you mean guardrails\.mode\?",
        ),
        ('[guardrails.input]\nmail = "flag"', "guardrails_input"),
        ('[guardrails]\nblocklist = [""]', "guardrails_blocklist"),
    ],
)
def test_a_mistake_in_the_guardrails_is_one_sentence(folders, written, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        load(folders, user=written)


def test_a_project_cannot_change_the_guardrails(folders):
    with pytest.raises(ConfigurationError, match="guardrails_mode is not for a project to decide"):
        load(folders, here='[guardrails]\nmode = "off"')


@pytest.mark.parametrize(("name", "value"), [("sandbox", "off"), ("allow", "shell: *")])
def test_a_project_cannot_let_agents_do_more(folders, name, value):
    setting = f'{name} = "{value}"'
    assert load(folders, user=setting).is_set(name)
    with pytest.raises(ConfigurationError, match=f"{name} is not for a project to decide"):
        load(folders, here=setting)


def test_approval_rules_are_separated_by_semicolons_or_listed(folders):
    rules = ("shell: pytest *", "shell: ruff check *")
    assert load(folders, flags={"allow": "shell: pytest *; shell: ruff check *;"}).allow == rules
    assert load(folders, user='allow = ["shell: pytest *", "shell: ruff check *"]').allow == rules


SERVERS = """
[mcp.servers.files]
command = "npx"
args = ["-y", "files"]
env = { TOKEN = "${MINE}" }

[mcp.servers.remote]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer s3cret" }
timeout = 5
"""


def test_mcp_servers_are_tables_and_those_of_a_project_join_the_users(folders):
    here = '[mcp.servers.own]\ncommand = "own"\n[mcp.servers.files]\ncommand = "other"'
    configured = {one.name: one for one in load(folders, user=SERVERS, here=here).mcp.configured()}
    assert set(configured) == {"files", "remote", "own"}
    assert configured["files"].command == "other"
    assert configured["files"].args == ()
    assert (configured["remote"].url, configured["remote"].call_s) == ("https://example.org/mcp", 5)
    (files, *_) = load(folders, user=SERVERS).mcp.configured()
    assert (files.command, files.args, files.env) == ("npx", ("-y", "files"), {"TOKEN": "${MINE}"})


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            "[mcp.servers.x]",
            "mcp.servers.x is what was given but should have either command or url",
        ),
        ("[mcp.servers.x]\ncommand = 'a'\nurl = 'https://b.org'", "either command or url"),
        ("[mcp.servers.x]\ncommand = 'a'\ncolour = 1", "mcp.servers.x.colour is what was given"),
        ("[mcp.servers.x]\ncommand = 'a'\nargs = 's3cret'", "mcp.servers.x.args is what was given"),
        ("[mcp.servers.x]\nurl = 'http://b.org'", "should use https, except on this machine"),
        (
            "[mcp.servers.x]\nurl = 'https://b.org'\nargs = ['a']",
            "args, env and cwd only with command",
        ),
        ("[mcp.servers.x]\ncommand = 'a'\nheaders = {A = 's3cret'}", "headers only with url"),
        ("[mcp.servers.x]\nurl = 'https://b.org'\nheaders = {A = \"s3cret\\nB: c\"}", "one line"),
        ("[mcp.servers.x]\ncommand = 'a'\nenv = {'A=B' = 'c'}", "names of variables"),
        ("[mcp.servers.'X y']\ncommand = 'a'", "should have names of letters"),
        ("mcp = 3", "pravaha.toml: mcp is what was given"),
    ],
)
def test_a_wrong_mcp_server_is_one_sentence_without_secrets(folders, table, sentence):
    with pytest.raises(ConfigurationError) as caught:
        load(folders, user=table)
    assert sentence in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_domains_of_http_fetch_are_the_users_to_set(folders):
    assert load(folders).http_domains == ()
    assert load(folders, user="http_domains = ['A.org', '*.b.org']").http_domains == (
        "a.org",
        "*.b.org",
    )
    assert load(folders, http_domains="a.org b.org:81").http_domains == ("a.org", "b.org:81")
    with pytest.raises(ConfigurationError, match="is not for a project to decide"):
        load(folders, here="http_domains = ['a.org']")
    with pytest.raises(ConfigurationError, match="'\\*' is not a domain"):
        load(folders, http_domains="*")


def test_a_project_cannot_move_the_approvals_of_mcp_servers(folders):
    settings = load(folders, here="data_dir = 'evil'\ncache_dir = 'evil'")
    assert settings.mcp_approved == folders[1] / "mcp-approved.json"


def test_the_evidence_is_that_of_the_answerer():
    """The table of settings imports nothing of the engine, and so repeats the number."""
    assert Settings().min_evidence == MIN_EVIDENCE
