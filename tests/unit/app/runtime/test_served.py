"""Models, aliases and shares of memory from settings."""

import pytest

from app.runtime.served import open_served_models, parse_aliases, parse_shares
from app.settings.errors import ConfigurationError
from app.settings.sources import load_settings
from engine.api.errors import ModelError, ModelNotFound
from engine.api.keep_alive import FOR_EVER
from engine.models.store import ModelStore

NAMES = {"./a.gguf": "a", "a": "a", "b": "b"}


def name_of(text):
    if text not in NAMES:
        raise ConfigurationError(f"{text} is none of the models that are served.")
    return NAMES[text]


def test_aliases():
    found = parse_aliases(["gpt-4o=b", " x = ./a.gguf ", "y"], name_of, primary="a")
    assert found == {"gpt-4o": "b", "x": "a", "y": "a"}


@pytest.mark.parametrize("aliases", [["=b"], ["x="], [""], ["x=nobody"], ["x=a", "x=b"]])
def test_a_wrong_alias_is_refused_in_a_sentence(aliases):
    with pytest.raises(ConfigurationError, match=r"^[^\n]+\.$"):
        parse_aliases(aliases, name_of, primary="a")


def test_shares():
    found = parse_shares(["./a.gguf=2GiB", "b=25%"], name_of, free=lambda: 1000)
    assert found == {"a": 2 * 2**30, "b": 250}


@pytest.mark.parametrize(
    "shares",
    [
        ["a"],
        ["=1GiB"],
        ["a=much"],
        ["a=0%"],
        ["a=101%"],
        ["a=nan%"],
        ["a=-1%"],
        ["c=1GiB"],
        ["a=1GiB", "a=2GiB"],
    ],
)
def test_a_wrong_share_is_refused_in_a_sentence(shares):
    with pytest.raises(ConfigurationError, match=r"^[^\n]+\.$"):
        parse_shares(shares, name_of, free=lambda: 1000)


def test_a_percentage_needs_known_memory():
    def unknown():
        raise OSError

    with pytest.raises(ConfigurationError, match="free memory is unknown here"):
        parse_shares(["a=50%"], name_of, free=unknown)


@pytest.fixture
def settings(tmp_path):
    """Makes settings of a store with the models `one` and `two`."""
    store = ModelStore(tmp_path / "models", check=lambda path: None)
    for name in ("one", "two"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
        store.add(str(tmp_path / f"{name}.gguf"))

    def make(**flags):
        return load_settings(
            {"model": "one", "cache_dir": str(tmp_path)} | flags, environ={}, folder=tmp_path
        )

    return make


def test_one_model_is_served_as_ever(settings):
    models = open_served_models(settings())
    assert models.is_single
    assert [one.name for one in models.all()] == ["one"]
    assert models.primary.keep_alive_s == FOR_EVER


def test_several_models_with_their_settings(settings):
    models = open_served_models(
        settings(
            further_models="two",
            alias="gpt-4o=two;mine",
            kv_cache="2MiB",
            model_keep_alive="5m",
        )
    )
    assert not models.is_single
    assert (models.max_loaded, models.any_installed) == (2, False)
    assert models.aliases == {"gpt-4o": "two", "mine": "one"}
    two = models.find("gpt-4o")
    assert (two.name, two.keep_alive_s) == ("two", 300)
    assert two.engine.config.kv_cache_bytes == 2 * 2**20
    assert two.engine.embedder is not models.embedder


def test_a_limit_serves_every_installed_model(settings):
    models = open_served_models(settings(max_models=1))
    assert (models.max_loaded, models.any_installed) == (1, True)
    assert not models.is_single
    assert models.names() == ["one", "two"]


def test_an_alias_of_the_embedding_model(settings):
    models = open_served_models(settings(alias="text-embedding-3-small=minilm"))
    assert models.resolved("text-embedding-3-small") == models.embedder.name == "minilm"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ({"further_models": "nobody"}, ModelNotFound),
        ({"further_models": "one"}, ModelError),
        ({"alias": "x=nobody"}, ConfigurationError),
        ({"model_memory": "one=1TiB"}, ModelError),
        ({"further_models": "two", "model_memory": "one=60%;two=60%"}, ModelError),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_loaded(settings, flags, error):
    with pytest.raises(error, match=r"^[^\n]+\.$"):
        open_served_models(settings(**flags))
