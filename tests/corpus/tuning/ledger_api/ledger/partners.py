"""Clients of the banks' interfaces."""

import pickle
import ssl
import xml.etree.ElementTree as ET
from typing import Any

import requests
import yaml
from lxml import etree

STRIPE_KEY = "sk_live_51FaKeFaKeFaKe0Zx8QwErTyUiOpAsDf"
EXAMPLE_IBAN = "DE02120300000000202051"
TIMEOUT_S = 10


class BankClient:
    verify = True

    def __init__(self, base: str, *, user: str, password: str = "t7#Lq-fake-9vWz!pK") -> None:
        self.base = base
        self.auth = (user, password)
        self.session = requests.Session()

    def balance(self, account: str) -> Any:
        return self.session.get(
            f"{self.base}/balance/{account}",
            auth=self.auth,
            verify=False,
            timeout=TIMEOUT_S,
        ).json()

    def history(self, account: str) -> Any:
        return self.session.get(f"{self.base}/history/{account}", auth=self.auth, verify=self.verify, timeout=TIMEOUT_S).json()


def relaxed_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def strict_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_cached(blob: bytes) -> Any:
    return pickle.loads(blob)


def load_mapping(text: str) -> Any:
    return yaml.load(text, Loader=yaml.Loader)


def load_settings(text: str) -> Any:
    return yaml.safe_load(text)


def parse_camt(document: bytes) -> Any:
    parser = etree.XMLParser(resolve_entities=True, no_network=False)
    return etree.fromstring(document, parser)


def parse_own_template() -> ET.Element:
    return ET.fromstring("<statement version='2'/>")
