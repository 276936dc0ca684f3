"""The user's own collections and conversations, for a host of the user."""

import json
from contextlib import closing

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from app.server.mcp.api_client import (
    ApiClient,
    ApiRefusal,
    in_process_client,
    remote_client,
)
from app.server.mcp.mcp_server import mcp_server
from app.server.mcp.progress import Progress
from app.server.mcp.resources import NoSuchResource, listed_resources, read_resource
from app.server.mcp.tool import ToolCall
from app.server.mcp.tools.catalogue import TOOLS
from app.server.mcp.user_data import UserData
from app.settings.settings import Settings
from engine.conversations.assignment import Assignment
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeKind
from engine.embedding.embedder import Embedder
from engine.models.demo import MINILM
from engine.models.store import ModelStore
from engine.retrieval.library.library import Library
from tests.unit.conversations.database import node


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def user(settings):
    with closing(UserData(settings)) as data:
        yield data


async def no_api(scope, receive, send):
    """An API without vector stores."""
    body = json.dumps({"error": {"message": "This server keeps no files.", "code": "no_files"}})
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": body.encode()})


@pytest.fixture
async def api():
    async with in_process_client(no_api) as http:
        yield ApiClient(http)


async def _nobody(value, total, message):
    pass


async def run(tool, api, user, **given):
    call = ToolCall(api, Progress(_nobody), user)
    return await TOOLS[tool].run(call, TOOLS[tool].parse(given))


def talk(settings):
    with closing(Store.open(settings.conversations)) as store:
        store.trees.create("t", "About tea")
        nodes = [
            node("a", text="Is tea hot?"),
            node("b", "a", NodeKind.ASSISTANT, "Yes."),
            node("c", "a", NodeKind.ASSISTANT, "Mostly."),
        ]
        store.nodes.add(nodes, name=None, changes=[Assignment("head", "HEAD", "c")])
        store.writes.flush()


async def test_a_new_installation_has_nothing_and_gets_nothing(settings, user, api):
    assert await user.conversations() == []
    assert (await run("list_collections", api, user)).collections == []
    assert not settings.conversations.exists()
    assert not settings.retrieval.exists()


async def test_the_open_path_of_a_conversation_is_read(settings, user, api):
    talk(settings)
    uri = "pravaha://conversations/t"
    assert uri in [one.uri for one in await listed_resources(user)]
    text, kind = await read_resource("pravaha://conversations", api, user)
    (listed,) = json.loads(text)["conversations"]
    assert (listed["id"], listed["title"], listed["messages"]) == ("t", "About tea", 3)
    text, kind = await read_resource(uri, api, user)
    assert kind == "application/json"
    assert json.loads(text)["messages"] == [
        {"role": "user", "content": "Is tea hot?"},
        {"role": "assistant", "content": "Mostly."},
    ]
    with pytest.raises(NoSuchResource):
        await read_resource("pravaha://conversations/none", api, user)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_conversations_that_cannot_be_opened_are_a_sentence(settings, user, api, mode):
    settings.conversations.mkdir(parents=True)  # a folder where the database should be
    async with Client(mcp_server(api, user), mode=mode) as client:
        with pytest.raises(MCPError, match="conversation database"):
            await client.list_resources()
        with pytest.raises(MCPError, match="conversation database"):
            await client.read_resource("pravaha://conversations")
        assert await client.list_tools()


async def test_a_servers_clients_see_no_conversation(settings, api):
    talk(settings)
    text, _ = await read_resource("pravaha://conversations", api, None)
    found = json.loads(text)
    assert found["conversations"] == []
    assert "pravaha mcp" in found["note"]
    with pytest.raises(NoSuchResource):
        await read_resource("pravaha://conversations/t", api, None)


async def test_a_conversation_of_the_api_is_read_by_its_id():
    pages = {
        b"/v1/conversations/conv_1": {"id": "conv_1", "metadata": {}},
        b"/v1/conversations/conv_1/items?limit=100": {
            "data": [{"id": "msg_1"}],
            "has_more": True,
            "last_id": "msg_1",
        },
        b"/v1/conversations/conv_1/items?limit=100&after=msg_1": {
            "data": [{"id": "msg_2"}],
            "has_more": False,
        },
    }

    async def with_conversation(scope, receive, send):
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        body = pages[scope["raw_path"] + query]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async with in_process_client(with_conversation) as http:
        uri = "pravaha://conversations/conv_1"
        text, _ = await read_resource(uri, ApiClient(http), None)
    assert [one["id"] for one in json.loads(text)["items"]] == ["msg_1", "msg_2"]


async def test_own_collections_are_searched(settings, user, api, tmp_path):
    path = ModelStore(settings.models).add(MINILM.name).path
    file = tmp_path / "office.txt"
    file.write_text("The toner of the printer is empty.\n")
    with (
        closing(Embedder(lambda: path, precision="int8")) as embedder,
        Library(settings.retrieval, embedder) as library,
    ):
        library.create("office").add([file])
    (listed,) = (await run("list_collections", api, user)).collections
    assert (listed.name, listed.documents) == ("office", 1)
    found = await run("search", api, user, collection="office", query="toner")
    (passage,) = found.passages
    assert passage.file == str(file)
    assert "toner" in passage.text
    async with remote_client("http://127.0.0.1:1", None) as http:  # nobody is asked about it
        assert await run("search", ApiClient(http), user, collection="office", query="toner")
    text, _ = await read_resource("pravaha://collections/office", api, user)
    assert [one["file"] for one in json.loads(text)["documents"]] == [str(file)]
    with pytest.raises(ApiRefusal, match="no collection 'home'; there are: office"):
        await run("search", api, user, collection="home", query="toner")
