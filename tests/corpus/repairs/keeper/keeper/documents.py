"""Reading what users give."""

import pickle
import tarfile

import yaml


def settings(text: str):
    return yaml.load(text, Loader=yaml.Loader)


def amount(text: str):
    return eval(text)


def restore(blob: bytes):
    return pickle.loads(blob)


def unpack(archive: str, folder: str) -> None:
    with tarfile.open(archive) as bundle:
        bundle.extractall(folder)


def note(path: str) -> str:
    with open(path) as file:
        return file.read()
