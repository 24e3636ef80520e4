"""Credentials that the operator mounts: whose they are, and which an address is given.

Argo CD gives a plugin none, so the operator mounts Argo CD's own repository Secrets. They are chosen as Argo CD
chooses them for dependencies (reposerver/repository, `getHelmDependencyRepos` and `getRepoCredential`): by address,
then by name (for `@name` and `alias:name`), then the templates (`repo-creds`) by the longest prefix of the address,
then, for registries, by host alone. Three things are stricter here. A Secret with a `project` serves that project
only, and goes before those of everybody. A prefix ends where a name ends, so that `https://host` does not serve
`https://host.elsewhere`. And a Secret that cannot be read is an error, never a render without credentials.

Where no Secret fits, a Docker `config.json` serves registries and a Helm `repositories.yaml` HTTP repositories.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becalm.config.network import Network
from becalm.errors import ConfigError, PluginError
from becalm.manifests import stream, yamlio
from becalm.sources import addresses

_LABEL = "argocd.argoproj.io/secret-type"
_REPOSITORY, _TEMPLATE = "repository", "repo-creds"
_MOST_BYTES = 4 * 1024 * 1024
_YAML = (".yaml", ".yml", ".json")
_HINT = "see docs/dependencies.md, Credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One repository Secret, or one entry of a `repositories.yaml`; secret parts are not in its `repr`.

    Attributes:
        where: the folder or manifest, for messages.
        address: of the repository, or the prefix of a template; an OCI one says `oci://` here.
        name: what `@name` means; "" for a template.
        project: whose apps it serves; "" for all.
        is_template: serves every address below its own.
        certificate: PEM of a client certificate, `key` its key.
        ca: PEM that alone is trusted for this repository; "" for the usual ones.
        is_insecure: the server's certificate is not checked.
        is_plain: a registry without TLS.
    """

    where: str
    address: addresses.Address
    name: str = ""
    project: str = ""
    is_template: bool = False
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    is_insecure: bool = False
    is_plain: bool = False
    pass_all: bool = False
    proxy: str = field(default="", repr=False)
    no_proxy: str = field(default="", repr=False)

    @property
    def identity(self) -> str:
        """What tells it from others, without a secret: who was served by it, and as whom."""
        parts = (self.project, self.address.normal, self.name, self.username, str(self.is_insecure))
        return "\n".join(parts)

    def secrets(self) -> Iterator[str]:
        """What no message may hold."""
        yield from (one for one in (self.password, self.bearer_token, self.proxy) if one)


class Credentials:
    """All credentials of the operator, as far as they serve one project.

    Args:
        network: where they are mounted.
        project: of the app that is rendered.
    """

    def __init__(self, network: Network, project: str) -> None:
        found = [] if network.repositories is None else list(_secrets(network.repositories))
        visible = [one for one in found if one.project in ("", project)]
        # The project's own go first; else in the order of their files.
        self._own = sorted(visible, key=lambda one: not one.project)
        path = network.repository_config
        self._listed = [] if path is None else list(_repositories(path))

    def of(self, address: addresses.Address) -> Credential | None:
        """What an address is given; None for nothing."""
        exact = [one for one in self._own if not one.is_template and one.address.normal == address.normal]
        templates = [one for one in self._own if one.is_template and _is_below(address, one.address)]
        # `sorted` keeps the order of equals, so of two equal templates the project's own comes first.
        templates.sort(key=lambda one: len(one.address.path), reverse=True)
        host = [
            one
            for one in self._own
            if address.is_oci and one.address.is_oci and one.address.authority == address.authority
        ]
        listed = [one for one in self._listed if one.address.normal == address.normal]
        return next(iter((*exact, *templates, *host, *listed)), None)

    def covering(self, address: addresses.Address) -> Credential | None:
        """The Secret of the repository that an address lies in: the longest prefix, a template or not."""
        found = [one for one in self._own if _is_below(address, one.address)]
        return max(found, key=lambda one: len(one.address.path), default=None)

    def named(self, name: str) -> Credential | None:
        """What `@name` means; None where no repository has this name."""
        return next((one for one in (*self._own, *self._listed) if name and one.name == name), None)


def _is_below(address: addresses.Address, prefix: addresses.Address) -> bool:
    if (address.scheme, address.authority) != (prefix.scheme, prefix.authority):
        return False
    return address.path == prefix.path or address.path.startswith(f"{prefix.path}/")


def _secrets(directory: Path) -> Iterator[Credential]:
    """Every Secret for charts in a directory: its folders, and its YAML files."""
    try:
        entries = sorted(directory.iterdir()) if directory.is_dir() else [directory]
        for entry in entries:
            if entry.name.startswith("."):
                continue  # Kubernetes keeps a mounted volume's versions below such names
            if entry.is_dir():
                keys = {file.name: file for file in sorted(entry.iterdir()) if file.name[0] != "."}
                data = {name: _text(file, entry.name) for name, file in keys.items() if file.is_file()}
                # A folder has no labels. Argo CD's Helm repositories always have a name, templates never do.
                kind = _REPOSITORY if data.get("name") else _TEMPLATE
                yield from _credential(data, kind, f"{directory.name}/{entry.name}")
            elif entry.suffix in _YAML:
                yield from _manifests(entry)
    except OSError as error:
        raise ConfigError(
            f"the repository Secrets cannot be read: {error.strerror}", where=str(directory), hint=_HINT
        ) from error


def _text(file: Path, where: str) -> str:
    data = file.read_bytes()[:_MOST_BYTES]
    try:
        return data.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as error:
        raise ConfigError("the key is not UTF-8", where=f"{where}/{file.name}", hint=_HINT) from error


def _manifests(file: Path) -> Iterator[Credential]:
    for value in _documents(file):
        items = value.get("items") if isinstance(value, dict) and "items" in value else [value]
        for item in items if isinstance(items, list) else []:
            if not isinstance(item, dict) or item.get("kind") != "Secret":
                continue
            metadata: Any = item.get("metadata") or {}
            kind = (metadata.get("labels") or {}).get(_LABEL)
            if kind in (_REPOSITORY, _TEMPLATE):
                where = f"{file.name}: Secret/{metadata.get('name', '')}"
                yield from _credential(_decoded(item, where), kind, where)


def _documents(file: Path) -> Iterator[Any]:
    """The documents of a YAML file. What its errors would quote may be a secret, so they only name the file."""
    if file.stat().st_size > _MOST_BYTES:
        raise ConfigError("the file is larger than 4 MiB", where=str(file), hint=_HINT)
    try:
        text = file.read_bytes().decode("utf-8")
        for document in stream.split(text):
            if not document.is_empty:
                yield yamlio.load(document.text, where=file.name)
    except (UnicodeDecodeError, PluginError) as error:
        raise ConfigError("the file is not YAML", where=str(file), hint=_HINT) from error


def _decoded(secret: dict[str, Any], where: str) -> dict[str, str]:
    data: dict[str, str] = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            data[name] = base64.b64decode(str(value or ""), validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"the key {name} is not base64 of a text", where=where, hint=_HINT) from error
    return data | {name: str(value) for name, value in (secret.get("stringData") or {}).items()}


def _credential(data: dict[str, str], kind: str, where: str) -> Iterator[Credential]:
    """A Secret, if it is for charts. Argo CD's default of `type` is git."""
    is_oci = data.get("type") == "oci" or data.get("enableOCI") == "true"
    if data.get("type") not in ("helm", "oci"):
        return
    url = data.get("url", "")
    if is_oci:
        # Argo CD wants a registry without a scheme.
        url = f"oci://{url.removeprefix('oci://')}"
    yield Credential(
        where=where,
        address=_address(url, where),
        name=data.get("name", "") if kind == _REPOSITORY else "",
        project=data.get("project", ""),
        is_template=kind == _TEMPLATE,
        username=data.get("username", ""),
        password=data.get("password", ""),
        bearer_token=data.get("bearerToken", "") if is_oci else "",
        certificate=data.get("tlsClientCertData", ""),
        key=data.get("tlsClientCertKey", ""),
        is_insecure=data.get("insecure") == "true",
        is_plain=data.get("insecureOCIForceHttp") == "true",
        proxy=data.get("proxy", ""),
        no_proxy=data.get("noProxy", ""),
    )


def _address(url: str, where: str) -> addresses.Address:
    try:
        return addresses.parse(url, where=where)
    except PluginError as error:
        # The operator's own file, and an address with a password in it must not be shown.
        raise ConfigError("`url` is no address of a repository", where=where, hint=_HINT) from error


def _repositories(path: Path) -> Iterator[Credential]:
    """The entries of a Helm `repositories.yaml` (helm's pkg/repo, `Entry`)."""
    try:
        documents: Sequence[Any] = list(_documents(path))
        entries: Any = documents[0].get("repositories") or [] if documents else []
        for entry in entries:
            files = {name: _pem(path, entry.get(name)) for name in ("certFile", "keyFile", "caFile")}
            where = f"{path.name}: {entry.get('name', '')}"
            yield Credential(
                where=where,
                address=_address(str(entry.get("url", "")), where),
                name=str(entry.get("name", "")),
                username=str(entry.get("username") or ""),
                password=str(entry.get("password") or ""),
                certificate=files["certFile"],
                key=files["keyFile"],
                ca=files["caFile"],
                is_insecure=entry.get("insecure_skip_tls_verify") is True,
                pass_all=entry.get("pass_credentials_all") is True,
            )
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path), hint=_HINT) from error
    except AttributeError as error:
        raise ConfigError("the file is no repositories.yaml of helm", where=str(path), hint=_HINT) from error


def _pem(beside: Path, name: object) -> str:
    return _text(beside.parent / str(name), beside.name) if name else ""
