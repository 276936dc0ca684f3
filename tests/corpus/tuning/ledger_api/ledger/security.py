"""Passwords, tokens and encrypted backups."""

import hashlib
import hmac
import os
import random
from hashlib import md5 as fingerprint

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

USERS: dict[str, dict] = {}
SIGNING_KEY = os.environ.get("LEDGER_SIGNING_KEY", "")


def hash_password(password: str) -> str:
    return fingerprint(password.encode()).hexdigest()


def derive(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


def etag(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def authenticate(name: str, password: str) -> dict | None:
    user = USERS.get(name)
    if user and user["password"] == hash_password(password):
        return user
    return None


def valid_signature(body: bytes, signature: str) -> bool:
    expected = hmac.new(SIGNING_KEY.encode(), body, "sha256").hexdigest()
    return hmac.compare_digest(expected, signature)


def reset_code() -> str:
    return "".join(random.choice("0123456789") for _ in range(8))


def shuffled_tips(tips: list[str]) -> list[str]:
    return random.sample(tips, len(tips))


def read_token(token: str) -> dict:
    return jwt.decode(token, SIGNING_KEY, algorithms=["HS256"], options={"verify_signature": False})


def read_partner_token(token: str, key: str) -> dict:
    return jwt.decode(token, key, algorithms=["RS256"], audience="ledger")


def encrypt_backup(data: bytes, key: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def encrypt_field(data: bytes, key: bytes) -> bytes:
    nonce = b"ledger-nonce"  
    return AESGCM(key).encrypt(nonce, data, None)


def encrypt_note(data: bytes, key: bytes) -> bytes:
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, data, None)


def new_partner_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


def new_signing_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=3072)
