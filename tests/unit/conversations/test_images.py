"""Images of messages: in prompts, in the file, in forks, exports and after deletion."""

import json
import random
import sqlite3
from contextlib import closing

import pytest

from engine.api.errors import InvalidRequest
from engine.api.image import Image
from engine.conversations.export import export_json, export_markdown, export_messages
from engine.conversations.importing import read_conversation
from engine.conversations.session import TreeSession
from engine.conversations.shortening import send_shortened
from engine.conversations.storage.store import Store
from engine.conversations.ulid import new_ulid
from engine.vision.opening import open_image
from tests.fakes.chat_toys import (
    CONTROLS,
    IMAGE,
    IMAGE_TOKENS,
    REWRITING,
    SEEING,
    ToyClient,
)
from tests.fakes.images import whole_png

RED, BLUE = (open_image(whole_png(9, 5, colour)) for colour in ((255, 0, 0), (0, 0, 255)))
PLACEHOLDER = CONTROLS.index(IMAGE)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "conversations.db"


@pytest.fixture
def store(file):
    store = Store.open(file)
    yield store
    store.close()


@pytest.fixture
def client():
    return ToyClient(SEEING)


@pytest.fixture
def session(store, client):
    return TreeSession(store, client)


def answer(session, client, text="an answer"):
    client.write(text, eos=True)
    session.pump()


def images(request):
    """The images of a request; checks that its prompt has their placeholders where they are placed."""
    tokens = request.prompt_ids
    places = [at for at, token in enumerate(tokens) if token == PLACEHOLDER]
    placed = [at for one in request.images for at in range(one.start, one.start + one.tokens)]
    assert places == placed
    return [one.image for one in request.images]


def stored_images(store):
    store.writes.flush()
    with closing(sqlite3.connect(store.file)) as connection:
        return connection.execute("SELECT count(*) FROM image").fetchone()[0]


def test_a_message_is_sent_with_its_images_before_its_text(session, client):
    session.messages.send("compare", images=[RED, BLUE])
    request = client.requests[-1]
    assert images(request) == [RED, BLUE]
    text = client.tokenizer.decode(request.prompt_ids, skip_special=False)
    assert f"user\n{IMAGE * 2 * IMAGE_TOKENS}compare<|im_end|>" in text
    assert session.path()[0].n_images == 2
    assert session.nodes.images_of(session.path()[0].id) == (RED, BLUE)


def test_later_prompts_have_the_images_of_all_messages_and_keep_the_answers_ids(session, client):
    session.messages.send("first", images=[RED])
    answer(session, client)
    before = client.requests[-1].prompt_ids
    session.messages.send("second", images=[BLUE])
    after = client.requests[-1]
    assert images(after) == [RED, BLUE]
    assert after.prompt_ids[: len(before)] == before
    answer(session, client)
    session.messages.send("third")
    assert images(client.requests[-1]) == [RED, BLUE]


def test_a_placeholder_that_an_answer_sampled_is_no_image(session, client):
    session.messages.send("first", images=[RED])
    client.write(f"a {IMAGE}", eos=True, special=True)
    session.pump()
    session.messages.send("second")
    request = client.requests[-1]
    assert [one.image for one in request.images] == [RED]
    assert request.prompt_ids.count(PLACEHOLDER) == IMAGE_TOKENS + 1


def test_a_placeholder_that_the_user_spells_is_text(session, client):
    session.messages.send(f"what is {IMAGE}?", images=[RED])
    assert images(client.requests[-1]) == [RED]


def test_a_template_that_rewrites_contents_still_places_images(store):
    client = ToyClient(REWRITING.replace("else m['content']", "else m['content'] | toy_parts"))
    client.sees_images = True
    session = TreeSession(store, client, system_prompt=None)
    session.messages.send("look", images=[RED])
    assert images(client.requests[-1]) == [RED]


def test_images_are_kept_over_a_restart(file, client):
    store = Store.open(file)
    session = TreeSession(store, client)
    session.messages.send("look", images=[RED, BLUE])
    answer(session, client)
    session.close()
    store.close()
    store = Store.open(file)
    again = TreeSession(store, client)
    again.messages.send("and?")
    assert images(client.requests[-1]) == [RED, BLUE]
    store.check_integrity()
    again.close()
    store.close()


def test_forks_edits_copies_and_regenerated_answers_have_the_images(session, client, store):
    session.messages.send("look", images=[RED])
    answer(session, client)
    first, reply = (node.id for node in session.path())
    session.branches.regenerate()
    assert images(client.requests[-1]) == [RED]
    answer(session, client)
    session.branches.expand(2)
    assert [images(one) for one in client.requests[-2:]] == [[RED], [RED]]
    for at in (-1, -2):
        client.write("x", eos=True, at=at)
    session.pump()
    session.branches.edit(first, "look again")
    assert images(client.requests[-1]) == [RED]
    answer(session, client)
    session.merging.graft(reply)
    session.messages.send("both")
    assert images(client.requests[-1]) == [RED, RED]
    assert stored_images(store) == 1


def test_equal_images_are_stored_once_and_deleted_with_their_last_message(session, client, store):
    secret = Image(random.Random(0).randbytes(300_000), "image/png", 9, 5)
    trees = []
    for text in ("one", "two"):
        trees.append(session.conversations.open_new())
        session.messages.send(text, images=[secret])
        answer(session, client)
    assert stored_images(store) == 1
    session.conversations.archive(trees[0])
    session.conversations.erase([trees[0]])
    assert stored_images(store) == 1
    session.conversations.open(trees[1])
    assert session.nodes.images_of(session.path()[0].id) == (secret,)
    session.conversations.archive(trees[1])
    session.conversations.erase([trees[1]])
    assert stored_images(store) == 0
    store.check_integrity()
    parts = [secret.data[at : at + 64] for at in range(0, len(secret.data) - 64, 4096)]
    for path in store.file.parent.glob("conversations.db*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(part in content for part in parts), path


def test_the_bytes_are_in_the_file_before_they_are_deleted(session, client, store):
    session.messages.send("look", images=[secret := Image(b"secret" * 99, "image/png", 9, 5)])
    answer(session, client)
    store.writes.flush()
    files = store.file.parent.glob("conversations.db*")
    assert any(secret.data in path.read_bytes() for path in files if path.is_file())


def test_images_survive_export_and_import(session, client, store):
    session.messages.send("look", images=[RED, BLUE])
    answer(session, client)
    session.conversations.add(export_json(session.contents()))
    session.messages.send("and?")
    assert images(client.requests[-1]) == [RED, BLUE]
    answer(session, client)
    lines = "\n".join(session.export())
    session.conversations.add(lines)
    assert session.nodes.images_of(session.path()[0].id) == (RED, BLUE)


def test_a_message_list_has_images_as_data_urls(session, client):
    session.messages.send("look", images=[RED])
    answer(session, client)
    text = export_messages(session.path(), session.nodes.images_of)
    url = json.loads(text)[0]["content"][0]["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")
    again = read_conversation(text, new_id=new_ulid, now=0.0)
    assert [node.images for node in again.nodes] == [(RED,), ()]
    assert again.nodes[0].text == "look"
    assert "*1 image*" in export_markdown("T", session.path())


USER = {"id": "a", "kind": "user", "text": "x"}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"nodes": [{**USER, "images": [{"data": "AAAA"}]}]}, "damaged"),
        ({"nodes": [{**USER, "images": ["AAAA"]}]}, "damaged"),
        ({"nodes": [{**USER, "images": [{"data": "#"}]}]}, "damaged"),
        ({"nodes": [{**USER, "images": [{}] * 65}]}, "more than 64"),
        ({"nodes": [{**USER, "kind": "system", "images": [{"data": "AAAA"}]}]}, "damaged"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://x/"}}],
                }
            ],
            "data: URL",
        ),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": 1}]}], "data: URL"),
    ],
)
def test_bad_images_of_an_import_are_refused(document, why):
    with pytest.raises(InvalidRequest, match=why):
        read_conversation(json.dumps(document), new_id=new_ulid, now=0.0)


def test_only_the_users_messages_have_images():
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "AAAA"}},
        {"type": "text", "text": "x"},
    ]
    with pytest.raises(InvalidRequest):
        read_conversation(
            json.dumps([{"role": "assistant", "content": parts}]), new_id=new_ulid, now=0.0
        )


def test_a_model_without_sight_refuses_images_and_the_conversation_stays(store):
    session = TreeSession(store, ToyClient())
    with pytest.raises(InvalidRequest, match="toy sees none"):
        session.messages.send("look", images=[RED])
    assert session.path() == []


def test_another_model_refuses_a_conversation_with_images(store, client):
    session = TreeSession(store, client)
    session.messages.send("look", images=[RED])
    answer(session, client)
    client.sees_images = False
    with pytest.raises(InvalidRequest, match="load a model that does"):
        session.messages.send("and?")
    session.context.shorten(summarised=False, keep=0)
    session.messages.send("and?")  # the images are not in the context any more
    assert client.requests[-1].images == ()


def test_a_message_with_images_is_not_queued(session, client):
    session.messages.send("first")
    with pytest.raises(InvalidRequest, match="cannot wait"):
        session.messages.send("look", images=[RED])
    assert session.messages.queued == ()
    answer(session, client)
    session.messages.send("", images=[RED])  # a text is not needed beside an image
    assert images(client.requests[-1]) == [RED]


def test_images_are_sent_after_the_context_was_shortened(session, client):
    session.messages.send("first")
    answer(session, client)
    with pytest.raises(InvalidRequest, match="cannot wait for a summary"):
        send_shortened(session, "look", summarised=True, length=4096, images=[RED])
    session.messages.send("second")
    answer(session, client)
    send_shortened(session, "look", summarised=False, length=4096, images=[RED])
    assert images(client.requests[-1]) == [RED]


def test_requests_beside_answers_have_the_images(session, client):
    session.messages.send("look", images=[RED])
    answer(session, client)
    session.tokens.warm(session.head)
    assert images(client.requests[-1]) == [RED]
    session.tokens.next_tokens(session.head, 1)
    assert images(client.requests[-1]) == [RED]
