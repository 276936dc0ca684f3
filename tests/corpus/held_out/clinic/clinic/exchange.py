"""Exchange with laboratories."""

import marshal
import shelve
import ssl
from xml.dom.minidom import parseString
from xml.sax import make_parser
from xml.sax.handler import feature_external_ges

import aiohttp
import dill as restore
import urllib3
from defusedxml.minidom import parseString as parse_checked
from ruamel.yaml import YAML

SLACK = "xoxb-123456789012-1234567890123-FaKeFaKeFaKeFaKeFaKeFaKe"
LAB_DSN = "postgresql://lab:Qe6-fake-Zt8uN@db.example.org:5432/lab"
TEST_DSN = "postgresql://lab:{password}@localhost/lab"
pool = urllib3.PoolManager(cert_reqs="CERT_NONE")
checked_pool = urllib3.PoolManager(cert_reqs="CERT_REQUIRED", ca_certs="/etc/ssl/certs/ca-certificates.crt")


async def results(url: str) -> list[dict]:
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
        return await answer.json()


async def images(url: str) -> bytes:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=ssl.create_default_context()) as answer:
        return await answer.read()


def old_device_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLSv1)


def device_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def cached(name: str) -> object:
    with open(f"/var/cache/clinic/{name}.bin", "rb") as file:
        return restore.load(file)


def counters(blob: bytes) -> object:
    return marshal.loads(blob)


def settings(text: str) -> object:
    return YAML(typ="safe").load(text)


def index() -> shelve.Shelf:
    return shelve.open("/var/lib/clinic/index", flag="r")


def hl7(document: str) -> object:
    return parseString(document)


def hl7_checked(document: str) -> object:
    return parse_checked(document)


def hl7_stream(path: str) -> None:
    parser = make_parser()
    parser.setFeature(feature_external_ges, True)
    parser.parse(path)
