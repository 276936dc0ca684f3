"""`/v1/files` with the official client: uploads, pages, contents, expiry, and what is refused."""

import os

import httpx
import openai
import pytest

from app.server.process.context import MAX_UPLOADS
from app.server.retrieval.file_folder import PartialFile
from tests.server.byte_engine import wait_until
from tests.server.files_server import Clock, files_server

TEXT = b"A heron is a bird. \xff\x00 bytes stay as they are.\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with files_server(tmp_path_factory.mktemp("files"), max_upload_bytes=3_000_000) as running:
        yield running


def test_a_file_is_uploaded_read_listed_and_deleted(served):
    file = served.upload("bird's näme.md", TEXT)
    assert file.id.startswith("file-")
    assert (file.object, file.filename, file.bytes) == ("file", "bird's näme.md", len(TEXT))
    assert (file.purpose, file.status, file.expires_at) == ("assistants", "processed", None)
    assert file.created_at == served.clock.now
    assert served.api.files.retrieve(file.id) == file
    assert file.id in [one.id for one in served.api.files.list()]
    content = served.api.files.content(file.id)
    assert content.read() == TEXT
    assert content.response.headers["x-content-type-options"] == "nosniff"
    assert content.response.headers["content-type"] == "application/octet-stream"
    gone = served.api.files.delete(file.id)
    assert (gone.id, gone.object, gone.deleted) == (file.id, "file", True)
    for call in (served.api.files.retrieve, served.api.files.content, served.api.files.delete):
        with pytest.raises(openai.NotFoundError) as caught:
            call(file.id)
        assert caught.value.code == "not_found"


def test_deleted_bytes_and_names_leave_the_disk(served):
    file = served.upload("ornithology-secret.md", b"the kingfisher nests at kilometre 71")
    assert served.contains(b"kingfisher nests")
    assert served.contains(b"ornithology-secret")
    served.api.files.delete(file.id)
    assert not served.contains(b"kingfisher nests")
    assert not served.contains(b"ornithology-secret")


def test_a_listing_has_pages_in_both_orders_and_by_purpose(tmp_path):
    with files_server(tmp_path) as served:
        ids = [served.upload(f"{i}.txt", b"x").id for i in range(5)]
        other = served.upload("own.txt", b"x", purpose="user_data").id
        assert [one.id for one in served.api.files.list()] == [other, *reversed(ids)]
        page = served.api.files.list(limit=2, order="asc")
        assert [one.id for one in page.data] == ids[:2]
        assert page.has_more is True
        assert [one.id for one in page] == [*ids, other]  # the client follows the pages
        last = served.api.files.list(limit=4, order="asc", after=ids[1])
        assert last.has_more is False
        assert [one.id for one in served.api.files.list(purpose="user_data")] == [other]
        with pytest.raises(openai.BadRequestError) as caught:
            served.api.files.list(after="file-gone")
        assert caught.value.param == "after"


def test_a_file_of_megabytes_arrives_whole(served):
    data = os.urandom(2_500_000)
    file = served.upload("blob.bin", data)
    assert served.api.files.content(file.id).read() == data
    served.api.files.delete(file.id)


def test_an_upload_over_the_limit_is_a_413_and_leaves_nothing(served):
    before = set(served.folder.rglob("*"))
    with pytest.raises(openai.APIStatusError) as caught:
        served.upload("big.bin", b"x" * 3_100_000)
    assert caught.value.status_code == 413
    assert "3000000" in caught.value.message

    def chunks():  # without a length, it is found while it arrives
        yield b'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 65_536

    answer = served.http.post(
        "/v1/files", content=chunks(), headers={"content-type": "multipart/form-data; boundary=b"}
    )
    assert answer.status_code == 413
    assert set(served.folder.rglob("*")) == before


def test_other_bodies_keep_the_small_limit(tmp_path):
    with files_server(tmp_path, max_body_bytes=2000) as served:
        served.upload("a.txt", b"x" * 5000)
        answer = served.http.post("/v1/vector_stores", json={"name": "x" * 3000})
        assert answer.status_code == 413


def test_an_allowed_page_of_another_site_may_upload(tmp_path):
    page = {"origin": "https://chat.example"}
    with files_server(tmp_path, cors_origins=("https://chat.example",)) as served:
        for headers, status in ((page, 200), ({"origin": "https://evil.test"}, 403)):
            response = served.http.post(
                "/v1/files", content=form(PURPOSE, FILE), headers=FORM | headers
            )
            assert response.status_code == status


FORM = {"content-type": "multipart/form-data; boundary=b"}


def part(name, value, filename=None):
    file = "" if filename is None else f'; filename="{filename}"'
    head = f'--b\r\ncontent-disposition: form-data; name="{name}"{file}\r\n\r\n'
    return head.encode() + value + b"\r\n"


def form(*parts, end=b"--b--\r\n"):
    return b"".join(parts) + end


PURPOSE = part("purpose", b"assistants")
FILE = part("file", b"x", "a.txt")


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (form(FILE), FORM, 400, "purpose"),
        (form(part("purpose", b"fine-tune"), FILE), FORM, 400, "'fine-tune'"),
        (form(PURPOSE), FORM, 400, "no `file`"),
        (form(PURPOSE, FILE, FILE), FORM, 400, "twice"),
        (form(PURPOSE, PURPOSE, FILE), FORM, 400, "twice"),
        (form(PURPOSE, part("file", b"x", "")), FORM, 400, "no name"),
        (form(PURPOSE, part("file", b"x", "../..")), FORM, 400, None),
        (form(PURPOSE, FILE, end=b""), FORM, 400, "ends before"),
        (form(PURPOSE, FILE)[:-30], FORM, 400, "ends before"),
        (b"--c\r\nnothing", FORM, 400, "not a valid form"),
        (form(part("purpose", b"a" * 2000), FILE), FORM, 400, "too long"),
        (form(*[part(f"f{i}", b"x") for i in range(40)]), FORM, 400, "32 parts"),
        (form(PURPOSE, FILE), {"content-type": "multipart/form-data"}, 400, "boundary"),
        (b"{}", {"content-type": "application/json"}, 415, "multipart"),
        (form(PURPOSE, FILE), FORM | {"origin": "https://evil.test"}, 403, "other sites"),
        (form(PURPOSE, FILE), FORM | {"content-encoding": "gzip"}, 415, "uncompressed"),
        (
            form(PURPOSE, FILE, part("expires_after[seconds]", b"7200")),
            FORM,
            400,
            "anchor",
        ),
        (
            form(
                PURPOSE,
                FILE,
                part("expires_after[anchor]", b"created_at"),
                part("expires_after[seconds]", b"5"),
            ),
            FORM,
            400,
            "3600",
        ),
        (form(PURPOSE, part("expires_after[days]", b"1"), FILE), FORM, 400, "expires_after[days]"),
    ],
    ids=[
        "no purpose",
        "other purpose",
        "no file",
        "two files",
        "two purposes",
        "no name",
        "name of dots",
        "no end",
        "cut off",
        "no form",
        "long purpose",
        "many parts",
        "no boundary",
        "json",
        "other site",
        "compressed",
        "no anchor",
        "short life",
        "unknown member",
    ],
)
def test_a_form_that_is_wrong_is_refused_and_leaves_nothing(served, body, headers, status, words):
    before = set(served.folder.rglob("*"))
    answer = served.http.post("/v1/files", content=body, headers=headers)
    if words is None:  # a name of dots and slashes is no path, but a name
        assert answer.json()["filename"] == ".."
        served.api.files.delete(answer.json()["id"])
        return
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert set(served.folder.rglob("*")) == before


def test_a_path_in_the_name_reaches_no_other_folder(served):
    answer = served.http.post(
        "/v1/files",
        content=form(PURPOSE, part("file", b"x", "../../etc/pass\x1bwd.TXT")),
        headers=FORM,
    )
    file = answer.json()
    assert file["filename"] == "passwd.TXT"
    assert [path.name for path in served.folder.rglob(f"{file['id']}*")] == [f"{file['id']}.txt"]
    served.api.files.delete(file["id"])


def test_unknown_form_fields_are_listed_or_refused(served, tmp_path):
    body = form(PURPOSE, part("colour", b"red"), FILE)
    answer = served.http.post("/v1/files", content=body, headers=FORM)
    assert answer.status_code == 200
    assert answer.headers["x-pravaha-ignored-fields"] == "colour"
    with files_server(tmp_path, strict_fields=True) as strict:
        answer = strict.http.post("/v1/files", content=body, headers=FORM)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "colour"


def test_a_file_expires_and_leaves_the_disk(tmp_path):
    with files_server(tmp_path) as served:
        after = {"anchor": "created_at", "seconds": 3600}
        file = served.upload("brief.txt", b"short lived words", expires_after=after)
        assert file.expires_at == file.created_at + 3600
        served.clock.now += 3599
        assert served.api.files.retrieve(file.id) == file
        served.wake_after(1)
        with pytest.raises(openai.NotFoundError):
            served.api.files.retrieve(file.id)
        assert not list(served.api.files.list())
        wait_until(lambda: not served.contains(b"short lived words"))


def test_files_are_kept_over_a_restart_and_leftovers_are_not(tmp_path):
    clock = Clock()
    with files_server(tmp_path, clock=clock) as served:
        file = served.upload("kept.txt", TEXT)
    (tmp_path / "files" / "file-half.part").write_bytes(b"cut off by a crash")
    with files_server(tmp_path, clock=clock) as served:
        assert served.api.files.retrieve(file.id) == file
        assert served.api.files.content(file.id).read() == TEXT
        assert not served.contains(b"cut off")


def test_a_second_server_of_the_same_folder_says_so(tmp_path):
    with files_server(tmp_path) as first:
        first.upload("a.txt", b"x")
        with files_server(tmp_path) as second:
            answer = second.http.get("/v1/files")
            assert answer.status_code == 503
            assert "Another Pravāha server" in answer.json()["error"]["message"]


def test_a_server_without_files_says_so(server):
    for path in ("/v1/files", "/v1/vector_stores"):
        answer = httpx.get(f"{server.url}{path}")
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "no_files"


def test_a_full_disk_is_a_507_that_is_not_repeated(served, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    answer = served.http.post("/v1/files", content=form(PURPOSE, FILE), headers=FORM)
    monkeypatch.undo()
    assert answer.status_code == 507
    assert answer.json()["error"]["code"] == "insufficient_storage"
    assert answer.headers["x-should-retry"] == "false"
    assert not list(served.folder.rglob("*.part"))


def test_a_client_that_leaves_in_mid_upload_leaves_nothing(served):
    with served.server.connect() as connection:
        head = (
            "POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n"
            "content-type: multipart/form-data; boundary=b\r\n\r\n"
        )
        connection.sendall(head.encode() + part("file", b"half of it", "a.txt"))
        wait_until(lambda: list(served.folder.rglob("*.part")))
    wait_until(lambda: not list(served.folder.rglob("*.part")))


def test_too_many_uploads_at_a_time_are_refused(served):
    connections = [served.server.connect() for _ in range(MAX_UPLOADS)]
    try:
        for connection in connections:
            connection.sendall(
                b"POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000000\r\n"
                b"content-type: multipart/form-data; boundary=b\r\n\r\n"
            )
        wait_until(lambda: served.server.context.uploads.locked())
        answer = served.http.post("/v1/files", content=form(PURPOSE, FILE), headers=FORM)
        assert answer.status_code == 429
        assert answer.headers["x-should-retry"] == "true"
    finally:
        for connection in connections:
            connection.close()
    wait_until(lambda: not served.server.context.uploads.locked())
    served.upload("a.txt", b"x")


def test_an_upload_is_never_whole_in_memory(served, monkeypatch):
    sizes = []
    write = PartialFile.write

    def noting(self, data):
        sizes.append(len(data))
        write(self, data)

    monkeypatch.setattr(PartialFile, "write", noting)
    file = served.upload("blob.bin", b"x" * 2_900_000)
    assert sum(sizes) == file.bytes == 2_900_000
    assert max(sizes) <= 1_500_000  # a mebibyte and what arrived at once
