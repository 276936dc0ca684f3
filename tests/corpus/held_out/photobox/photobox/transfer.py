"""Copying photographs to other places."""

import contextlib
import os
import pathlib
import shelve
import shlex
import shutil
import socket
import stat
import tempfile
import zipfile
from ftplib import FTP, FTP_TLS
from subprocess import PIPE, Popen
from subprocess import check_output as output

TARGET = "ftp.example.org"


class Transfer:
    """Copies to one host."""

    SPOOL = "/tmp/photobox-spool"

    def __init__(self, host: str) -> None:
        self.host = host

    def connect(self) -> FTP:
        return FTP(self.host)

    def connect_tls(self) -> FTP_TLS:
        return FTP_TLS(self.host)

    def remote_size(self, name: str) -> int:
        command = ["ssh", self.host, "stat", "-c", "%s", shlex.quote(name)]
        return int(output(command))

    def remote_sum(self, name: str) -> str:
        with Popen("ssh " + self.host + " sha256sum " + name, shell=True, stdout=PIPE, text=True) as process:
            return process.communicate()[0]

    def preview(self, name: str, *, options: str = "-resize 200") -> bytes:
        template = "convert {name} {options} png:-"
        return output(["/bin/sh", "-c", template.format(name=name, options=options)])

    def unpack(self, archive: str, target: str) -> None:
        with zipfile.ZipFile(archive) as bundle:
            for member in bundle.infolist():
                pathlib.Path(target, member.filename).write_bytes(bundle.read(member))

    def unpack_all(self, archive: str, target: str) -> None:
        shutil.unpack_archive(archive, target, filter="data")

    def share(self, path: str) -> None:
        os.chmod(path, stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)

    def keep(self, path: str) -> None:
        pathlib.Path(path).chmod(stat.S_IRUSR | stat.S_IWUSR)

    def serve(self) -> socket.socket:
        server = socket.socket()
        server.bind(("", 4455))
        return server

    def serve_local(self) -> socket.socket:
        server = socket.socket()
        server.bind(("localhost", 4456))
        return server

    def scratch(self) -> str:
        with tempfile.NamedTemporaryFile(delete=False) as file:
            return file.name


def copy_all(names: list[str], target: str) -> int:
    done = 0
    for name in names:
        with contextlib.suppress(BaseException):
            shutil.copy(name, target)
        done += 1
    return done


def label_all(names: list[str]) -> dict[str, str]:
    labels = {}
    for name in names:
        with shelve.open("labels") as store:
            labels[name] = store.get(name, "")
    return labels
