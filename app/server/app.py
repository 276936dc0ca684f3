"""The application factory: routes, middleware and error handlers in one ASGI application."""

import re

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute

from agents.guardrails.guardrails import Guardrails
from agents.guardrails.policy import Policy, moderation_policy
from agents.service.run_service import RunService
from app.server.calls.retrieval import on_retrieval_error
from app.server.mcp.endpoint import McpEndpoint
from app.server.middleware.auth import ApiKeyAuth, public_paths
from app.server.middleware.body_limit import BodyLimit
from app.server.middleware.disconnect import ClientDisconnected
from app.server.middleware.envelope import Envelope
from app.server.middleware.hosts import LoopbackHosts
from app.server.middleware.model_waits import ModelWaits
from app.server.middleware.plain_path import PlainPath
from app.server.openapi.documentation import Documentation
from app.server.process.config import ServerConfig
from app.server.process.context import ServerContext
from app.server.responses.store import ResponseStore
from app.server.retrieval.errors import RetrievalError
from app.server.retrieval.service import RetrievalService
from app.server.routes import (
    agent_tools,
    agents,
    chat,
    completions,
    conversations,
    decisions,
    documentation,
    embeddings,
    files,
    fork,
    health,
    installed_models,
    introspection,
    llamacpp,
    mcp,
    messages,
    metrics,
    models,
    moderations,
    ollama,
    ollama_models,
    prefixes,
    price,
    rerank,
    responses,
    responses_socket,
    root,
    scheduling,
    sessions,
    streams,
    tokenize,
    uploads,
    vector_stores,
)
from app.server.wire import errors
from engine.retrieval.parsing.image_reader import ImageReader
from engine.runtime.engine import AsyncPravahaEngine
from engine.runtime.served_models import ServedModels

_ROUTERS = (
    agents.router,
    agent_tools.router,
    root.router,
    documentation.router,
    chat.router,
    messages.router,
    responses.router,
    responses_socket.router,
    conversations.router,
    completions.router,
    embeddings.router,
    rerank.router,
    decisions.router,
    files.router,
    uploads.router,
    vector_stores.router,
    moderations.router,
    llamacpp.router,
    ollama.router,
    ollama_models.router,
    fork.router,
    streams.router,
    mcp.router,
    installed_models.router,  # before the routes whose model name may contain slashes
    models.router,
    tokenize.router,
    price.router,
    prefixes.router,
    scheduling.router,
    sessions.router,
    health.router,
    metrics.router,
    introspection.router,
)

_UPLOADS = re.compile(r"/v1/files|/v1/uploads/[^/]+/parts")
"""Paths whose POST bodies are written to disk while they arrive."""
_WITH_IMAGES = frozenset(
    {
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
    }
)
"""Paths whose bodies may have images."""
_PREFLIGHT_S = 7200
"""Time for which a browser need not ask again; the longest that Chrome keeps."""


def create_app(
    engine: AsyncPravahaEngine | ServedModels,
    config: ServerConfig | None = None,
    *,
    run_service: RunService | None = None,
    guardrails: Guardrails | None = None,
    moderation: Guardrails | None = None,
    retrieval: RetrievalService | None = None,
    image_reader: ImageReader | None = None,
    responses: ResponseStore | None = None,
) -> FastAPI:
    """The API over one or several models, and over agents and files if there are any.

    The caller starts and closes all.

    Args:
        engine: the engine of the only model, or the models.
        config: the server's settings.
        run_service: runs agents; None serves none.
        guardrails: check messages and answers; None checks nothing.
        moderation: answers `/v1/moderations`; None takes the recognizers with their defaults.
        retrieval: keeps files and vector stores; None serves none.
        image_reader: reads the text of images; None reads none, and only a model that sees takes images.
        responses: keeps responses and conversations; None keeps them in memory.
    """
    context = ServerContext(
        engine if isinstance(engine, ServedModels) else ServedModels.single(engine),
        config or ServerConfig(),
        agents=run_service,
        guardrails=guardrails,
        moderation=moderation or Guardrails(moderation_policy(Policy())),
        retrieval=retrieval,
        image_reader=image_reader,
        responses=responses or ResponseStore(),
    )
    app = FastAPI(
        title="Pravāha",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=_middleware(context),
    )
    app.state.server = context
    app.state.mcp = McpEndpoint(app, context.config)
    app.state.documentation = Documentation(
        all_routes(), needs_key=context.config.api_key is not None
    )
    _allow_head()
    for router in _ROUTERS:
        app.include_router(router)
    errors.install(app)
    app.add_exception_handler(RetrievalError, on_retrieval_error)
    for gone in (ClientDisconnected, ClientDisconnect):  # after the body, and within it
        app.add_exception_handler(gone, _client_gone)
    return app


def _middleware(context: ServerContext) -> list[Middleware]:
    """Outermost first, in increasing order of the cost of refusing a request.

    Pages of other sites can read every answer, refusals included, or none; a preflight has no key.
    """
    config = context.config
    layers = [Middleware(PlainPath)]
    if config.cors_origins:
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=config.cors_origins,
                allow_methods=("GET", "HEAD", "POST", "DELETE"),
                allow_headers=("*",),
                expose_headers=("*",),
                allow_private_network=True,  # a public page may ask a server on this machine
                max_age=_PREFLIGHT_S,
            )
        )
    layers.append(Middleware(Envelope, counters=context.counters))
    if config.on_loopback:
        layers.append(Middleware(LoopbackHosts, also=config.allowed_hosts))
    if config.api_key is not None:
        public = public_paths(all_routes())
        layers.append(Middleware(ApiKeyAuth, api_key=config.api_key, public=public))
    layers.append(
        Middleware(
            BodyLimit,
            max_bytes=config.max_body_bytes,
            timeout_s=config.body_timeout_s,
            is_upload=_is_upload,
            max_upload_bytes=config.max_upload_bytes,
            with_images=_WITH_IMAGES,
            max_image_bytes=config.max_image_bytes,
        )
    )
    layers.append(Middleware(ModelWaits, context=context, is_upload=_is_upload))
    return layers


def _is_upload(path: str) -> bool:
    return _UPLOADS.fullmatch(path) is not None


def _allow_head() -> None:
    """Let every GET route answer HEAD, which FastAPI does not; uvicorn leaves the body out."""
    for route in all_routes():
        if isinstance(route, APIRoute) and route.methods and "GET" in route.methods:
            route.methods.add("HEAD")


def all_routes() -> list[BaseRoute]:
    """The routes of every application."""
    return [route for router in _ROUTERS for route in router.routes]


async def _client_gone(_: Request, __: Exception) -> Response:
    # 499 is nginx's status for a client that closed the request; only our counters see it.
    return Response(status_code=499)
