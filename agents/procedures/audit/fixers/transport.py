"""Fixers of connections and parsers: certificates, host keys, protocol versions, XML."""

import ast
from importlib.util import find_spec

from agents.procedures.audit.fixers.edits import Fix, Target

_NAMES = {
    "ssl._create_unverified_context": ("ssl.create_default_context", "Certificates are checked."),
    "ssl.CERT_NONE": ("ssl.CERT_REQUIRED", "Certificates are checked."),
    "ssl.PROTOCOL_TLSv1": ("ssl.PROTOCOL_TLS_CLIENT", "TLS 1.2 or newer is used."),
    "ssl.PROTOCOL_TLSv1_1": ("ssl.PROTOCOL_TLS_CLIENT", "TLS 1.2 or newer is used."),
    "ssl.PROTOCOL_SSLv23": ("ssl.PROTOCOL_TLS_CLIENT", "TLS 1.2 or newer is used."),
    "ssl.PROTOCOL_SSLv3": ("ssl.PROTOCOL_TLS_CLIENT", "TLS 1.2 or newer is used."),
    "paramiko.AutoAddPolicy": ("paramiko.RejectPolicy", "Unknown hosts are refused."),
    "paramiko.client.AutoAddPolicy": ("paramiko.RejectPolicy", "Unknown hosts are refused."),
    "paramiko.WarningPolicy": ("paramiko.RejectPolicy", "Unknown hosts are refused."),
}
_XML = ("xml.etree.ElementTree", "xml.dom.minidom", "xml.sax", "xml.dom.pulldom")


def fix_connection(target: Target) -> Fix | None:
    """A name that switches a check off becomes the one that keeps it (CWE-295, CWE-322, CWE-327)."""
    for node in target.nodes():
        if not isinstance(node, ast.Attribute | ast.Name):
            continue
        new = _NAMES.get(target.module.qualified(node) or "")
        if new is not None:
            module = new[0].split(".")[0]
            return target.fix(new[1], target.replace(node, new[0]), imports=[module])
    return None


def fix_xml(target: Target) -> Fix | None:
    """A parser of the standard library becomes defusedxml's, where that is installed (CWE-20, CWE-611)."""
    if find_spec("defusedxml") is None:
        return None
    for call in target.calls():
        name = target.module.call_name(call)
        module, _, function = name.rpartition(".")
        if module in _XML and function in ("parse", "fromstring", "parseString", "iterparse"):
            safe = module.replace("xml.etree", "defusedxml").replace("xml.dom", "defusedxml")
            safe = safe.replace("xml.sax", "defusedxml.sax")
            return target.fix(
                "Entities and external parts of documents are refused.",
                target.replace(call.func, f"{safe}.{function}"),
                imports=[safe],
            )
    return None
