"""Models from a direct link: what is fetched, resumed, checked, and refused."""

import hashlib
from pathlib import Path

import pytest

from engine.api.errors import FetchError, FetchInterrupted, ModelError
from engine.executors.open_model import open_model
from engine.models import web_download
from engine.models.store import ModelStore
from engine.models.web_address import WebAddress, parse_web_address
from tests.fakes.file_server import serve_files
from tests.fakes.tiny_gguf import write_tiny_gguf


@pytest.fixture
def store(tmp_path):
    return ModelStore(tmp_path / "store", check=open_model)


@pytest.fixture
def model(tmp_path):
    return write_tiny_gguf(tmp_path / "tiny-Q4_K_M.gguf").read_bytes()


@pytest.fixture
def server(model, monkeypatch):
    monkeypatch.setattr(web_download, "_PAUSE_S", 0.0)
    with serve_files({"/models/tiny-Q4_K_M.gguf": model}) as running:
        yield running


@pytest.fixture
def link(server):
    return f"{server.url}/models/tiny-Q4_K_M.gguf"


def ranges(server):
    return [headers.get("range") for _, headers in server.requests]


def is_empty(store):
    return not list((store.root / "staging").iterdir()) and store.list() == []


def test_a_linked_file_is_fetched_with_progress(store, server, link, model):
    reports = []
    added = store.add(f"{link}?signature=secret#part", progress=reports.append)
    assert (added.name, added.origin, added.source) == ("tiny-Q4_K_M", "web", link)
    assert added.path.read_bytes() == model
    assert [file.sha256 for file in added.files] == [hashlib.sha256(model).hexdigest()]
    downloads = [one for one in reports if one.stage == "download"]
    assert (downloads[-1].done, downloads[-1].total) == (len(model), len(model))
    (request,) = server.requests
    assert request[0] == "/models/tiny-Q4_K_M.gguf?signature=secret"
    assert request[1]["accept-encoding"] == "identity"
    assert store.add(link) == added
    assert store.verify(added.name) == ()
    assert len(server.requests) == 1


def test_a_connection_that_breaks_off_is_opened_again_where_it_was(store, server, link, model):
    server.cuts = [1000, 500]
    assert store.add(link).path.read_bytes() == model
    assert ranges(server) == [None, "bytes=1000-", "bytes=1500-"]


@pytest.mark.parametrize("version", ["etag", "date", "none", "weak"])
def test_the_rest_is_fetched_only_of_the_same_file(store, server, link, model, version):
    server.etag = {"etag": '"v1"', "weak": 'W/"v1"'}.get(version, "")
    server.modified = "Sat, 28 Nov 2026 02:00:00 GMT" if version == "date" else ""
    server.cuts = [1000]
    assert store.add(link).path.read_bytes() == model
    resumed = version in ("etag", "date")
    assert ranges(server) == [None, "bytes=1000-" if resumed else None]


def test_a_server_without_ranges_sends_all_again(store, server, link, model):
    server.ranges, server.cuts = False, [1000]
    assert store.add(link).path.read_bytes() == model


def test_the_same_command_continues_an_interrupted_download(store, server, link, model):
    server.cuts = [1000, *[0] * web_download.ATTEMPTS]
    with pytest.raises(FetchInterrupted, match="1000 bytes arrived, and the same command goes on"):
        store.add(link)
    assert store.list() == []
    server.requests.clear()
    assert store.add(link).path.read_bytes() == model
    assert ranges(server) == ["bytes=1000-"]
    assert not list((store.root / "staging").iterdir())


def test_a_file_that_has_changed_meanwhile_is_fetched_again(store, server, link, tmp_path):
    server.cuts = [1000, *[0] * web_download.ATTEMPTS]
    with pytest.raises(FetchInterrupted):
        store.add(link)
    changed = write_tiny_gguf(tmp_path / "b.gguf", fields={"general.name": "changed"}).read_bytes()
    server.files["/models/tiny-Q4_K_M.gguf"], server.etag = changed, '"v2"'
    assert store.add(link).path.read_bytes() == changed


def test_a_download_from_elsewhere_does_not_continue_it(store, server, link, model):
    server.files["/other/tiny-Q4_K_M.gguf"] = model
    server.cuts = [1000, *[0] * web_download.ATTEMPTS]
    with pytest.raises(FetchInterrupted):
        store.add(link)
    server.requests.clear()
    assert store.add(f"{server.url}/other/tiny-Q4_K_M.gguf").path.read_bytes() == model
    assert ranges(server) == [None]


def test_all_parts_of_a_split_model_are_fetched(store, server, tmp_path):
    first = write_tiny_gguf(tmp_path / "split.gguf", max_tensors=8)
    parts = sorted(path for path in tmp_path.glob("*-of-*.gguf"))
    assert len(parts) > 1
    server.files |= {f"/models/{path.name}": path.read_bytes() for path in parts}
    added = store.add(f"{server.url}/models/{parts[-1].name}?x=1")
    assert (added.name, added.path.name) == ("split", first.name)
    assert [file.name for file in added.files] == [path.name for path in parts]
    assert [path for path, _ in server.requests] == [f"/models/{path.name}?x=1" for path in parts]


def test_a_file_of_unknown_length_is_fetched(store, server, link, model):
    server.sends_length = False
    assert store.add(link).path.read_bytes() == model


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(store, server, link, status):
    server.status["/models/tiny-Q4_K_M.gguf"] = status
    with pytest.raises(FetchError, match=f"the server answers with status {status} ") as caught:
        store.add(link)
    assert not isinstance(caught.value, FetchInterrupted)
    assert len(server.requests) == 1
    assert is_empty(store)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_server_is_asked_again(store, server, link, status):
    server.status["/models/tiny-Q4_K_M.gguf"] = status
    with pytest.raises(FetchInterrupted, match=f"status {status}"):
        store.add(link)
    assert len(server.requests) == web_download.ATTEMPTS


def test_a_server_that_is_not_there_is_an_error_in_one_sentence(store, monkeypatch):
    monkeypatch.setattr(web_download, "_PAUSE_S", 0.0)
    with serve_files({}) as closed:
        url = closed.url
    with pytest.raises(FetchInterrupted, match="could not be fetched") as caught:
        store.add(f"{url}/a.gguf")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<!DOCTYPE html>", "text/html; charset=utf-8", "is a web page, not a GGUF file"),
        (b"PK\x03\x04", "application/zip", r"is not a GGUF file: it begins with b'PK\\x03\\x04'"),
        (b"", "application/octet-stream", "is empty"),
        (b"GGUF\x03\x00", "application/octet-stream", "ends inside the header"),
    ],
)
def test_what_is_no_model_is_refused_and_not_kept(store, server, link, body, kind, words):
    server.files["/models/tiny-Q4_K_M.gguf"], server.kind = body, kind
    with pytest.raises(ModelError, match=words) as caught:
        store.add(link)
    assert not isinstance(caught.value, FetchInterrupted)
    assert "\n" not in str(caught.value)
    assert is_empty(store)


def test_a_digest_is_checked(store, server, link, model, tmp_path):
    digest = hashlib.sha256(model).hexdigest()
    with pytest.raises(ModelError, match=f"SHA-256 {digest} instead of {'0' * 64}"):
        store.add(link, sha256="0" * 64)
    assert is_empty(store)
    with pytest.raises(ModelError, match="64 hexadecimal digits, unlike 'abc'"):
        store.add(link, sha256="abc")
    added = store.add(link, sha256=f"sha256:{digest.upper()}")
    assert store.add(link, sha256=digest) == added
    with pytest.raises(ModelError, match="instead of"):
        store.add(link, sha256="0" * 64)
    local = tmp_path / "tiny-Q4_K_M.gguf"
    with pytest.raises(ModelError, match="instead of"):
        store.add(str(local), name="local", sha256="0" * 64)
    assert store.add(str(local), name="local", sha256=digest).name == "local"


def test_a_file_without_room_is_refused_before_it_is_fetched(store, server, link, monkeypatch):
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr(web_download.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(FetchError, match=r"does not fit on the disk: it has .* and 100 are free"):
        store.add(link)
    assert is_empty(store)


def test_redirects_are_followed(store, server, model):
    server.redirects = {"/a.gguf": "/b", "/b": f"{server.url}/models/tiny-Q4_K_M.gguf?x"}
    added = store.add(f"{server.url}/a.gguf")
    assert (added.name, added.path.read_bytes()) == ("a", model)
    server.redirects["/c.gguf"] = "/c.gguf"
    with pytest.raises(FetchError, match="too many redirects"):
        store.add(f"{server.url}/c.gguf")


PRIVATE = {"files.lan": "192.168.1.5", "intranet": "10.0.0.1", "metadata": "169.254.169.254"}


@pytest.fixture
def names(monkeypatch):
    """Names without a network: those in PRIVATE are private, all others public."""

    def resolve(host, *_, **__):
        address = PRIVATE.get(host, host if host[0].isdigit() or ":" in host else "93.184.216.34")
        return [(2, 1, 6, "", (address, 0))]

    monkeypatch.setattr(web_download.socket, "getaddrinfo", resolve)


@pytest.mark.parametrize(
    ("url", "target", "words"),
    [
        ("https://example.org/a.gguf", "https://cdn.example/a", None),
        ("http://files.lan/a.gguf", "http://files.lan/b", None),
        ("http://files.lan/a.gguf", "https://cdn.example/a", None),
        ("https://example.org/a.gguf", "http://cdn.example/a", "not https"),
        ("https://example.org/a.gguf", "ftp://cdn.example/a", "not https"),
        ("https://example.org/a.gguf", "file:///etc/passwd", "not https"),
        ("https://example.org/a.gguf", "https://intranet/a", "private address"),
        ("https://example.org/a.gguf", "https://metadata/a", "private address"),
        ("https://example.org/a.gguf", "https://127.0.0.1/a", "private address"),
        ("https://example.org/a.gguf", "https://[::ffff:10.0.0.1]/a", "private address"),
        ("https://example.org/a.gguf", "https://[::1]/a", "private address"),
    ],
)
def test_a_redirect_must_not_lead_to_a_less_safe_place(names, url, target, words):
    private = web_download._is_private(url)
    if words is None:
        web_download._check_redirect(url, target, from_private=private)
        return
    with pytest.raises(FetchError, match=words):
        web_download._check_redirect(url, target, from_private=private)


def test_http_is_for_private_addresses(store, names):
    with pytest.raises(FetchError, match="fetched over https from public servers"):
        store.add("http://example.org/a.gguf")
    assert is_empty(store)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://example.org/org/name", "is no link to a GGUF file"),
        ("https://user:secret@example.org/x?key=secret", "https://example.org/x' is no link"),
        ("https://example.org/model.safetensors", "is no link to a GGUF file"),
        ("https://example.org/", "is no link to a GGUF file"),
        ("https:///a.gguf", "is not an address that begins with https"),
        ("ftp://example.org/a.gguf", "is not an address that begins with https"),
        ("https://[::1/a.gguf", "is not a web address"),
        ("https://example.org:x/a.gguf", "is not a web address"),
        ("https://example.org/..%2Fa.gguf", "cannot be stored"),
        ("https://example.org/a%0A.gguf", "cannot be stored"),
        ("https://example.org/.a.gguf", "cannot be stored"),
    ],
)
def test_other_addresses_are_refused_in_a_sentence(store, text, words):
    with pytest.raises(ModelError, match=words) as caught:
        store.add(text)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_is_printed_without_what_is_secret_in_it():
    address = parse_web_address("https://user:pass@example.org:8443/a/b%20c.gguf?key=1#x")
    assert address == WebAddress(
        "https://user:pass@example.org:8443/a/b%20c.gguf?key=1", "b c.gguf"
    )
    assert str(address) == "https://example.org:8443/a/b%20c.gguf"
    assert parse_web_address("org/name") is None
    assert Path(address.name).suffix == ".gguf"
