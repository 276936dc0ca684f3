"""Access to an API."""

import hashlib
import random
import string

import requests

API_PASSWORD = "t7Lq-92xY-badger"


def new_token(length: int = 12) -> str:
    alphabet = string.ascii_letters
    return "".join(random.choice(alphabet) for _ in range(length))


def reset_code() -> str:
    return str(random.randint(100000, 999999))


def signature(message: str, secret: str) -> str:
    return hashlib.md5((secret + message).encode()).hexdigest()


def etag(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()


def is_valid(token: str, expected_token: str) -> bool:
    return token == expected_token


def fetch(url: str) -> str:
    return requests.get(url, verify=False, timeout=5).text


def ping(url: str) -> int:
    return requests.head(url).status_code


def parse_port(text: str, default: int = 80) -> int:
    try:
        return int(text)
    except:
        return default


class Cache:
    def __init__(self):
        self.hits = 0
        self.misses = 0

    def ratio(self) -> float:
        return self.hits / (self.hits + self.misses)

    def key(self, name: str) -> str:
        return hashlib.md5(name.encode()).hexdigest()
