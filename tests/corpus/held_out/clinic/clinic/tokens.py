"""Tokens, passwords and sealed letters."""

import base64
import datetime as dt
import hashlib as h
import hmac
import secrets
import time
from random import Random

import jwt as tokens
from Crypto.Cipher import AES, DES
from Crypto.PublicKey import RSA
from fastapi import Header, HTTPException

KEYS = {"2024": secrets.token_urlsafe(32)}
DEFAULT_KEY = "c1inic-fake-4f6b2e9d8a7c5310"
_rng = Random(time.time())


def password_digest(password: str, salt: str) -> str:
    digest = h.new("sha1")
    digest.update((salt + password).encode())
    return digest.hexdigest()


def slow_digest(password: str, salt: bytes) -> bytes:
    return h.pbkdf2_hmac("sha256", password.encode(), salt, 600_000)


def cache_name(url: str) -> str:
    return h.sha1(url.encode(), usedforsecurity=False).hexdigest()


def issue(name: str, password: str) -> str:
    now = dt.datetime.now(dt.UTC)
    return tokens.encode({"sub": name, "exp": now + dt.timedelta(hours=1)}, KEYS["2024"], "HS512")


def issue_device(name: str) -> str:
    return tokens.encode({"sub": name}, None, algorithm="none")


def current_user(authorization: str = Header()) -> dict:
    try:
        return tokens.decode(authorization.removeprefix("Bearer "), KEYS["2024"], algorithms=["HS512"])
    except tokens.PyJWTError:
        raise HTTPException(401) from None


def device_user(token: str) -> dict:
    return tokens.decode(token, KEYS["2024"], algorithms=["HS512", "none"])


def is_support(pin: str) -> bool:
    return pin == DEFAULT_KEY


def is_lab(signature: bytes, body: bytes) -> bool:
    return hmac.compare_digest(hmac.digest(KEYS["2024"].encode(), body, "sha256"), signature)


def invitation() -> str:
    return "%08x" % _rng.getrandbits(32)


def voucher() -> str:
    return base64.b32encode(secrets.token_bytes(10)).decode()


def seal(letter: bytes, key: bytes) -> bytes:
    return DES.new(key, DES.MODE_CBC, b"\0" * 8).encrypt(letter)


def seal_archive(letter: bytes, key: bytes) -> bytes:
    cipher = AES.new(key, AES.MODE_CBC, iv=b"0123456789abcdef")
    return cipher.encrypt(letter)


def seal_scan(scan: bytes, key: bytes) -> tuple[bytes, bytes, bytes]:
    cipher = AES.new(key, AES.MODE_GCM, nonce=secrets.token_bytes(12))
    body, tag = cipher.encrypt_and_digest(scan)
    return cipher.nonce, body, tag


KEY_BITS = 768


def device_key() -> RSA.RsaKey:
    return RSA.generate(KEY_BITS)


def letter_key() -> RSA.RsaKey:
    return RSA.generate(bits=4096)
