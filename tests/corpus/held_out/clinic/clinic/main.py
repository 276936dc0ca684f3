"""The HTTP interface of the clinic."""

import asyncio
import logging
import os
import pathlib
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import uvicorn
from fastapi import APIRouter, Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader

from . import tokens
from .tokens import current_user

logger = logging.getLogger(__name__)
LETTERS = pathlib.Path("/var/lib/clinic/letters")
LABS = {"lab.example.org", "imaging.example.org"}

app = FastAPI(debug=True)
app.add_middleware(
    CORSMiddleware,
    allow_origin_regex=".*",
    allow_credentials=True,
)
api = APIRouter(prefix="/api", dependencies=[Depends(current_user)])
staff = APIRouter(prefix="/staff")
letters = Environment(loader=FileSystemLoader("templates"))
pages = Environment(loader=FileSystemLoader("templates"), autoescape=True)
User = Annotated[dict, Depends(current_user)]


@api.get("/letters/{name}")
async def letter(name: str) -> Response:
    path = (LETTERS / name).resolve()
    if not path.is_relative_to(LETTERS):
        raise HTTPException(404)
    return Response(path.read_bytes())


@api.get("/scans")
async def scan(file: str) -> Response:
    return Response(LETTERS.joinpath("scans", file).read_bytes())


@api.post("/letters/{name}/print")
async def print_letter(name: str, printer: Annotated[str, Body()]) -> dict[str, int]:
    process = await asyncio.create_subprocess_shell(f"lp -d {printer} {name}")
    return {"code": await process.wait()}


@api.post("/letters/{name}/archive")
async def archive_letter(name: str) -> dict[str, int]:
    process = await asyncio.create_subprocess_exec("gzip", "--keep", str(LETTERS / pathlib.Path(name).name))
    return {"code": await process.wait()}


@api.post("/import")
async def import_results(link: Annotated[str, Body()]) -> list[dict]:
    async with httpx.AsyncClient(timeout=10) as client:
        return (await client.get(link)).json()


@api.post("/import/lab")
async def import_lab(link: Annotated[str, Body()]) -> list[dict]:
    parts = urlsplit(link)
    if parts.scheme != "https" or parts.hostname not in LABS:
        raise HTTPException(422)
    async with httpx.AsyncClient(timeout=10) as client:
        return (await client.get(link)).json()


@staff.get("/patients")
async def patients(request: Request) -> list[dict]:
    return await request.app.state.patients.everyone()


@api.get("/patients/{patient_id}/record")
async def record(patient_id: int, request: Request) -> dict:
    return await request.app.state.patients.record(patient_id)


@api.get("/patients/me/record")
async def own_record(user: User, request: Request) -> dict:
    return await request.app.state.patients.record(user["patient_id"])


@app.get("/hello", response_class=HTMLResponse)
async def hello(name: str = "") -> str:
    return "<h1>Good morning, %s</h1>" % name


@app.get("/preview", response_class=HTMLResponse)
async def preview(body: str) -> str:
    return letters.from_string("<p>" + body + "</p>").render()


@app.get("/about", response_class=HTMLResponse)
async def about(name: str = "") -> str:
    return pages.get_template("about.html").render(name=name)


@app.get("/back")
async def back(request: Request) -> RedirectResponse:
    return RedirectResponse(request.query_params.get("to", "/"))


@app.post("/sign-in")
async def sign_in(name: Annotated[str, Body()], password: Annotated[str, Body()], response: Response) -> dict[str, str]:
    logger.info("sign-in of %r", name)
    token = tokens.issue(name, password)
    logger.debug(f"issued token {token} for {name}")
    response.set_cookie("session", token, httponly=False, secure=True, samesite="strict")
    return {"status": "ok"}


@api.post("/formula")
async def formula(source: Annotated[str, Body()], weight: Annotated[float, Body()]) -> float:
    scope: dict[str, float] = {"weight": weight}
    exec(compile(f"result = {source}", "<formula>", "exec"), scope)
    return scope["result"]


app.include_router(api)
app.include_router(staff)

if __name__ == "__main__":
    uvicorn.run(app, host=os.environ.get("CLINIC_HOST", "0.0.0.0"), port=8443)
