"""Addresses that charts and applications name: taken apart, checked, shown without secrets, and allowed or not.

They come from app teams, and what they name is asked by a process inside the operator's network. So an
address that could mean something else to the tool that reads it is refused, as is one that names the machine
itself or a link-local service (such as a cloud's metadata at 169.254.169.254), unless the operator lists it.
A name that resolves to such an address is not noticed; an egress policy of the cluster is the place for that.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from becalm.errors import ConfigError, SourceError

_URL = re.compile(
    r"(?P<scheme>https?|oci)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?"
)
_PATTERN = re.compile(
    r"(?P<scheme>https?|oci)://(?P<host>[^/:\[\]]+|\[[^\]]+\])(?::(?P<port>[0-9]+|\*))?(?P<path>/.*)?"
)
#: What an address may hold (RFC 3986), so that none can hide a line, a blank or a quotation mark.
_CHARACTERS = re.compile(r"[!#-;=?-Z_a-z~\[\]]+")
_USER = re.compile(r"(://)[^/@\s]*@")
_QUERY = re.compile(r"(://[^\s?#\"]*)\?[^\s\"]*")
_PORTS = {"http": "80", "https": "443", "oci": "443"}
_LONGEST = 2048
#: The machine, and where clouds answer who asks for its credentials.
_METADATA = ("localhost", "metadata", "metadata.google.internal", "[fd00:ec2::254]")
#: IPv4 by translation (RFC 6052).
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One address; `host` and `scheme` in lower case, `port` "" where it is the usual one, `path` without a / at its end."""

    text: str
    scheme: str
    host: str
    port: str
    path: str

    @property
    def authority(self) -> str:
        """The host, with its port if that is not the usual one."""
        return f"{self.host}:{self.port}" if self.port else self.host

    @property
    def is_oci(self) -> bool:
        """Whether a registry is meant."""
        return self.scheme == "oci"

    @property
    def normal(self) -> str:
        """One text for all spellings."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def shown(self) -> str:
        """The address for messages: a query can hold a token."""
        return shown(self.normal)


def shown(text: str) -> str:
    """A text in which no address tells its user, password or query."""
    return _QUERY.sub(r"\1?...", _USER.sub(r"\1", text))


def parse(text: str, *, where: str) -> Address:
    """Take an address apart.

    Raises:
        SourceError: it is none that becalm reads, or holds a password.
    """
    if len(text) > _LONGEST or not _CHARACTERS.fullmatch(text):
        raise SourceError(
            "the address holds characters that none may hold, or is too long",
            where=where,
            hint="write it as https://host/path or oci://host/path",
        )
    if re.match(r"[a-z]+://[^/]*@", text, re.IGNORECASE):
        raise SourceError(
            "the address holds a user or password",
            where=where,
            hint="take it out of the repository; the operator gives becalm credentials (docs/dependencies.md)",
        )
    match = (
        _URL.fullmatch(text[: text.find("://")].lower() + text[text.find("://") :]) if "://" in text else None
    )
    if match is None:
        raise SourceError(
            f"{shown(text)[:200]!r} is no address of a chart repository or registry",
            where=where,
            hint="write it as https://host/path or oci://host/path",
        )
    if any(
        part in (".", "..")
        for part in re.sub("%2e", ".", match["path"] or "", flags=re.IGNORECASE).split("/")
    ) or re.search("%2f|%5c", match["path"] or "", re.IGNORECASE):
        raise SourceError(
            f"{shown(text)[:200]!r} leads upwards", where=where, hint="write the path without . and .."
        )
    scheme, port = match["scheme"], (match["port"] or "").lstrip("0")
    return Address(
        text=text,
        scheme=scheme,
        host=match["host"].lower().rstrip("."),
        port="" if port == _PORTS[scheme] else port,
        path=(match["path"] or "").rstrip("/"),
    )


def require_allowed(address: Address, patterns: Sequence[str] | None, *, variable: str, where: str) -> None:
    """Refuse an address that the operator does not allow.

    Args:
        address: what an app names.
        patterns: `https://host:port/path` prefixes, in which `*` stands for any text of the host, for any port, or
            for a part of one name between slashes; None allows every https:// and oci:// address that is not of the machine itself.
        variable: the operator's setting, for messages.
        where: who names it, for messages.

    Raises:
        SourceError: it is not allowed.
        ConfigError: a pattern is no address.
    """
    if patterns is not None:
        if not any(_fits(address, pattern, variable) for pattern in patterns):
            raise SourceError(
                f"{address.shown} is not among the addresses that the operator allows",
                where=where,
                hint=f"ask the operator to add it to {variable}",
            )
        return
    if address.scheme == "http":
        raise SourceError(
            f"{address.shown} is not encrypted",
            where=where,
            hint=f"use https://, or ask the operator to add it to {variable}",
        )
    if _is_of_the_machine(address.host):
        raise SourceError(
            f"{address.shown} is an address of the machine itself or of its link",
            where=where,
            hint=f"ask the operator to add it to {variable}",
        )


def _fits(address: Address, pattern: str, variable: str) -> bool:
    match = _PATTERN.fullmatch(pattern)
    if match is None:
        raise ConfigError(
            f"{shown(pattern)[:200]!r} is no address",
            where=variable,
            hint="write prefixes as https://host/path",
        )
    port = "" if match["port"] == _PORTS[match["scheme"]] else match["port"] or ""
    if match["scheme"] != address.scheme or port not in ("*", address.port):
        return False
    if not fnmatchcase(address.host, match["host"].lower()):
        return False
    wanted = [part for part in (match["path"] or "").split("/") if part]
    given = [part for part in address.path.split("/") if part]
    return len(given) >= len(wanted) and all(map(fnmatchcase, given, wanted))


def _is_of_the_machine(host: str) -> bool:
    if host in _METADATA or host.endswith(".localhost"):
        return True
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        # Some resolvers take 0x7f.1 or 2130706433 for an address; no registry has such a name.
        return re.fullmatch(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", host) is not None
    if isinstance(found, ipaddress.IPv6Address):
        if found in _TRANSLATED:
            found = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        elif found.ipv4_mapped is not None:
            found = found.ipv4_mapped
    return found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast
