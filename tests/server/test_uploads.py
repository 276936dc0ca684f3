"""`/v1/uploads` with the official client: files in parts, and what is refused."""

import hashlib
import os

import openai
import pytest

from app.server.retrieval import parted_uploads
from tests.server.files_server import files_server


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with files_server(tmp_path_factory.mktemp("files"), max_upload_bytes=3_000_000) as running:
        yield running


def begin(served, size, **fields):
    given = {"filename": "birds.md", "mime_type": "text/markdown", "purpose": "assistants"}
    return served.api.uploads.create(bytes=size, **(given | fields))


def add(served, upload, data):
    return served.api.uploads.parts.create(upload.id, data=data).id


def part_files(served):
    return list((served.folder / "uploads").iterdir())


def refused(call, sentence, error=openai.BadRequestError):
    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)


def test_parts_become_one_file_in_the_order_of_the_completion(served):
    upload = begin(served, 12, filename="../my birds.md")
    assert (upload.object, upload.status, upload.bytes) == ("upload", "pending", 12)
    assert upload.expires_at - upload.created_at == 3600
    last, first = add(served, upload, b" bird.\n"), add(served, upload, b"Heron")
    left_out = add(served, upload, b"")
    done = served.api.uploads.complete(
        upload.id, part_ids=[first, last], md5=hashlib.md5(b"Heron bird.\n").hexdigest()
    )
    assert (done.id, done.status, done.file.filename) == (upload.id, "completed", "my birds.md")
    assert served.api.files.retrieve(done.file.id) == done.file
    assert served.api.files.content(done.file.id).read() == b"Heron bird.\n"
    assert part_files(served) == []
    refused(lambda: served.api.uploads.complete(upload.id, part_ids=[left_out]), "is completed")


def test_the_client_uploads_a_long_file_in_chunks_and_it_is_indexed(served, tmp_path):
    path = tmp_path / "long.md"
    path.write_bytes(b"A whimbrel calls seven times.\n\n" + os.urandom(900_000).hex().encode())
    done = served.api.uploads.upload_file_chunked(
        file=path, mime_type="text/markdown", purpose="assistants", part_size=500_000
    )
    assert served.api.files.content(done.file.id).read() == path.read_bytes()


def test_the_parts_must_be_what_was_announced(served):
    upload = begin(served, 4)
    part = add(served, upload, b"abc")
    complete = served.api.uploads.complete
    refused(lambda: complete(upload.id, part_ids=[part]), "3 bytes together, the upload 4")
    refused(lambda: add(served, upload, b"de"), "more than the 4 bytes")
    refused(lambda: complete(upload.id, part_ids=["x"]), "no part 'x'", openai.NotFoundError)
    other = add(served, upload, b"d")
    refused(lambda: complete(upload.id, part_ids=[part, other], md5="0" * 32), "MD5")
    assert complete(upload.id, part_ids=[part, other]).status == "completed"


def test_a_cancelled_upload_leaves_nothing(served):
    upload = begin(served, 30)
    add(served, upload, b"the kingfisher nests here")
    assert served.contains(b"kingfisher nests")
    assert served.api.uploads.cancel(upload.id).status == "cancelled"
    assert not served.contains(b"kingfisher nests")
    refused(lambda: add(served, upload, b"x"), "is cancelled")
    refused(lambda: served.api.uploads.cancel("upload_x"), "no upload", openai.NotFoundError)


def test_an_upload_expires_after_an_hour_and_is_forgotten_after_another(tmp_path):
    with files_server(tmp_path) as served:
        upload = begin(served, 3)
        add(served, upload, b"abc")
        served.clock.now += 3600
        refused(lambda: add(served, upload, b""), "is expired")
        assert part_files(served) == []
        served.clock.now += 3600
        refused(lambda: add(served, upload, b""), "no upload", openai.NotFoundError)


def test_a_file_of_an_upload_expires_as_asked(served):
    upload = begin(served, 1, expires_after={"anchor": "created_at", "seconds": 7200})
    done = served.api.uploads.complete(upload.id, part_ids=[add(served, upload, b"x")])
    assert done.file.expires_at - done.file.created_at == 7200


def test_what_cannot_be_uploaded_is_refused_at_once(served, monkeypatch):
    refused(lambda: begin(served, 3_000_001), "at most 3000000 bytes")
    refused(lambda: begin(served, 1, purpose="batch"), "purpose")
    refused(lambda: begin(served, 1, filename="/"), "no name")
    upload = begin(served, 3)
    answer = served.http.post(f"/v1/uploads/{upload.id}/parts", files={"file": b"abc"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "data")
    monkeypatch.setattr("app.server.routes.uploads.MAX_PART_BYTES", 2)
    refused(lambda: add(served, upload, b"abc"), "at most 2 bytes")
    monkeypatch.setattr(parted_uploads, "MAX_PENDING", 1)
    refused(lambda: begin(served, 1), "1 uploads are pending", openai.RateLimitError)
