"""Downloads charts with the stock helm: one at a time, with a private home, and checked before anybody uses them.

helm does the talking, not code of ours, so that repositories, registries, their tokens, redirects, ranges of versions and
`--pass-credentials` mean what they mean to helm and to Argo CD. It is run as `helm repo update` and `helm pull`, not
as `helm dependency build`: each chart is then cached by itself, its digest is compared with the index (which
helm does not), a credential is in no home but that of its own repository, and an error names one dependency and one address.

Credentials reach helm in files of mode 0600 in a directory that is ours and goes with the render, never as an
argument or variable. HTTP repositories are put into a `repositories.yaml`, registries into a Docker `config.json`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from becalm.config import private
from becalm.config.network import Network
from becalm.errors import ConfigError, PluginError, SourceError, ToolTimeoutError
from becalm.sources import index, requirements
from becalm.sources.addresses import Address, shown
from becalm.sources.chart_cache import ChartCache, Key
from becalm.sources.credentials import Credential
from becalm.sources.helm import Helm
from becalm.sources.process import Command, Completed, run
from becalm.sources.tree import load_chart

_ALIAS = "becalm"
_LARGEST = 100 * 1024 * 1024
_UNABLE = re.compile(r"Unable to get an update from [^\n]*\n\s*(?P<reason>[^\n]*)")
_CODE = r"(?:: |code |status )"
#: helm's words by what they mean, and the hint for it.
_FAULTS = (
    (re.compile(rf"{_CODE}401\b|[Uu]nauthorized|authentication required|no basic auth|credential not found"), "wants other credentials (401)",
     "check the credentials that the operator mounted for this address (docs/dependencies.md)"),
    (re.compile(rf"{_CODE}403\b|[Ff]orbidden|: denied"), "refuses access (403)",
     "check the credentials that the operator mounted for this address (docs/dependencies.md)"),
    (re.compile(r"x509:|tls: |certificate|HTTP response to HTTPS client"), "cannot be trusted",
     "give the operator's CA certificates by BECALM_CA_FILE or BECALM_TLS_CERTS_DIR"),
    (re.compile(r"no chart version found|could not locate a version|improper constraint"), "has no version that fits", "check the version"),
    (re.compile(rf"no chart name found|{_CODE}404\b|: not found|NAME_UNKNOWN|MANIFEST_UNKNOWN"), "does not have it",
     "check the address, the name and the version; some servers say so to whom they do not know"),
    (re.compile(r"connection refused|no such host|unreachable|no route|timeout|reset by peer|: EOF|misbehaving|server misbehaving"),
     "cannot be reached", "check the address, and the network of the sidecar"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One chart from the network: `version` is exact, a range, or "" for the newest.

    `where` is who asks for it, for messages; `credential` is what its address is given.
    """

    name: str
    version: str
    address: Address
    where: str
    credential: Credential | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The chart for messages."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A packed chart that has been read and checked, with the name and version that it says it has."""

    name: str
    version: str
    data: bytes = field(repr=False)


class Downloads:
    """What one render downloads.

    Args:
        helm: the binary; its `work` holds all that is downloaded, and its `timeout` is for all downloads together.
        network: the operator's settings.
        cache: where charts are kept.
    """

    def __init__(self, *, helm: Helm, network: Network, cache: ChartCache) -> None:
        self._helm = helm
        self._work = helm.work
        self._network = network
        self._cache = cache
        self._timeout = helm.timeout
        self._deadline: float | None = None
        self._updated: dict[str, Path] = {}

    def fetch(self, wanted: Wanted) -> Fetched:
        """One chart, from the cache or the network.

        Raises:
            SourceError: it is not there, not allowed, or not what it should be.
            ToolTimeoutError: the server did not answer in time.
        """
        scope = "" if wanted.credential is None else wanted.credential.identity
        if requirements.is_exact(wanted.version):
            data = self._cache.get(self._key(wanted, wanted.version, scope))
            if data is not None:
                return self._checked(wanted, data)
        found = self._checked(wanted, self._pull(wanted))
        if not wanted.address.is_oci:
            self._compare(wanted, found)
        self._cache.put(self._key(wanted, found.version, scope), found.data)
        return found

    def probe(self, chart: Path) -> str:
        """What `helm dependency list` says of a chart; it needs no network."""
        home = self._home()
        done = self._run(home, ("dependency", "list", str(chart)), {}, None)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

    def _key(self, wanted: Wanted, version: str, scope: str) -> Key:
        plain = version.strip().removeprefix("v")
        # A query can be a token.
        return Key(repository=_url(wanted.address), name=wanted.name, version=plain, scope=scope)

    def _checked(self, wanted: Wanted, data: bytes) -> Fetched:
        """The archive as a chart, with the name and version that were asked for."""
        file = Path(tempfile.mkdtemp(prefix="checked-", dir=self._work)) / f"{wanted.name}.tgz"
        file.write_bytes(data)
        try:
            name, version = requirements.named(load_chart(file, root=None))
        except PluginError as error:
            raise self._fault(
                wanted, f"sent what is refused: {error.what}", "tell whoever keeps the repository"
            ) from error
        if name != wanted.name:
            raise self._fault(wanted, f"sent another chart, {name}", "check the name")
        if requirements.is_exact(wanted.version) and _bare(version) != _bare(wanted.version):
            raise self._fault(wanted, f"sent version {version} instead", "tell whoever keeps the repository")
        return Fetched(name=name, version=version, data=data)

    def _compare(self, wanted: Wanted, found: Fetched) -> None:
        cached = self._updated[_url(wanted.address)] / "repositories" / f"{_ALIAS}-index.yaml"
        text = cached.read_bytes().decode("utf-8", "replace")
        expected = index.digest(text, found.name, found.version, where=wanted.address.shown)
        if expected and expected != hashlib.sha256(found.data).hexdigest():
            raise self._fault(
                wanted,
                "sent an archive that does not have the digest of its index",
                "the archive or the index was changed; tell whoever keeps the repository",
            )

    def _pull(self, wanted: Wanted) -> bytes:
        address, credential = wanted.address, wanted.credential
        if address.is_oci:
            home = self._home()
            reference = f"{address.normal}/{wanted.name}"
            flags = self._registry(home, address, credential)
        else:
            home = self._updated.get(_url(address)) or self._update(wanted)
            # What repositories.yaml says of certificates helm 4 forgets when it comes to the archive.
            is_insecure = credential is not None and credential.is_insecure
            reference = f"{_ALIAS}/{wanted.name}"
            flags = ("--insecure-skip-tls-verify",) if is_insecure else ()
        target = Path(tempfile.mkdtemp(prefix="pulled-", dir=home))
        version = (f"--version={wanted.version}",) if wanted.version else ()
        arguments = ("pull", reference, *version, f"--destination={target}", *flags)
        done = self._run(home, arguments, self._proxies(credential), wanted)
        found = sorted(target.glob("*.tgz"))
        if done.returncode != 0 or len(found) != 1:
            raise self._failure(wanted, done, home)
        if found[0].stat().st_size > _LARGEST:
            raise self._fault(wanted, "sent more than 100 MiB", "make the chart smaller")
        return found[0].read_bytes()

    def _update(self, wanted: Wanted) -> Path:
        """A home for one HTTP repository, with its index."""
        address, credential = wanted.address, wanted.credential
        home = self._home()
        entry: dict[str, Any] = {"name": _ALIAS, "url": _url(address)}
        ca = self._ca(address, credential)
        files = {"caFile": ca, "certFile": "", "keyFile": ""}
        if credential is not None:
            entry |= {"username": credential.username, "password": credential.password}
            entry["insecure_skip_tls_verify"] = credential.is_insecure
            entry["pass_credentials_all"] = self._network.pass_credentials or credential.pass_all
            files |= {"certFile": credential.certificate, "keyFile": credential.key}
        entry |= {name: str(_written(home, f"{name}.pem", pem)) for name, pem in files.items() if pem}
        # JSON is YAML.
        _written(home, "repositories.yaml", json.dumps({"apiVersion": "", "repositories": [entry]}))
        done = self._run(home, ("repo", "update", _ALIAS), self._proxies(credential), wanted)
        if not (home / "repositories" / f"{_ALIAS}-index.yaml").is_file():
            raise self._failure(wanted, done, home)
        self._updated[_url(address)] = home
        return home

    def _registry(self, home: Path, address: Address, credential: Credential | None) -> tuple[str, ...]:
        """Credentials for a registry, and flags for how it is spoken to."""
        flags: list[str] = []
        if ca := self._ca(address, credential):
            flags.append(f"--ca-file={_written(home, 'ca.pem', ca)}")
        if credential is None:
            if (path := self._network.registry_config) is not None:
                _written(home, "config.json", _docker_config(path))
            return tuple(flags)
        entry: dict[str, str] = {}
        if credential.bearer_token:
            entry["registrytoken"] = credential.bearer_token
        elif credential.username or credential.password:
            pair = f"{credential.username}:{credential.password}"
            entry["auth"] = base64.b64encode(pair.encode()).decode()
        _written(home, "config.json", json.dumps({"auths": {address.authority: entry} if entry else {}}))
        if credential.certificate and credential.key:
            flags.append(f"--cert-file={_written(home, 'cert.pem', credential.certificate)}")
            flags.append(f"--key-file={_written(home, 'key.pem', credential.key)}")
        # Helm 4 does not look at --plain-http beside --insecure-skip-tls-verify.
        if credential.is_plain:
            flags.append("--plain-http")
        elif credential.is_insecure:
            flags.append("--insecure-skip-tls-verify")
        return tuple(flags)

    def _ca(self, address: Address, credential: Credential | None) -> str:
        """The certificates that alone are trusted for a host; "" for those of the system and of BECALM_CA_FILE."""
        if credential is not None and credential.ca:
            return credential.ca
        return host_certificates(self._network, address.host)

    def _proxies(self, credential: Credential | None) -> Mapping[str, str]:
        return proxies(self._network, credential)

    def _home(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="helm-", dir=self._work))

    def _run(
        self, home: Path, arguments: tuple[str, ...], proxies_: Mapping[str, str], wanted: Wanted | None
    ) -> Completed:
        now = time.monotonic()
        if self._deadline is None:
            # Counted from the first run, so that a render that downloads nothing has no limit of this kind.
            self._deadline = now + self._timeout
        env = {
            **Helm(
                binary=self._helm.binary, path=self._helm.env["PATH"], work=home, timeout=self._timeout
            ).env,
            "HELM_REPOSITORY_CONFIG": str(home / "repositories.yaml"),
            "HELM_REPOSITORY_CACHE": str(home / "repositories"),
            "HELM_REGISTRY_CONFIG": str(home / "config.json"),
            "HELM_CONTENT_CACHE": str(home / "content"),
            **self._network.for_programs(proxies_),
        }
        try:
            return run(
                Command(
                    argv=(self._helm.binary, *arguments),
                    cwd=home,
                    env=env,
                    timeout=max(self._deadline - now, 0.1),
                )
            )
        except ToolTimeoutError as error:
            if wanted is None:
                raise
            raise ToolTimeoutError(
                f"{wanted.address.shown} did not send {wanted.label} within {self._timeout:g} s",
                where=wanted.where,
                hint="check the repository and the network of the sidecar, or commit the chart in charts/",
            ) from error

    def _failure(self, wanted: Wanted, done: Completed, home: Path) -> SourceError:
        """What helm's words mean."""
        text = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
        unable = _UNABLE.search(text)
        errors = [line.removeprefix("Error: ") for line in text.splitlines() if line.startswith("Error:")]
        reason = unable["reason"] if unable else next(reversed(errors), f"helm ended with {done.returncode}")
        details = (f"  helm: {self._harmless(reason, wanted, home)[:1000]}",)
        for pattern, what, hint in _FAULTS:
            if pattern.search(reason):
                return self._fault(wanted, what, hint, details)
        return self._fault(wanted, "did not send it", "see below what helm says", details)

    @staticmethod
    def _harmless(text: str, wanted: Wanted, home: Path) -> str:
        text = shown(text.replace(str(home), ""))
        for secret in () if wanted.credential is None else wanted.credential.secrets():
            text = text.replace(secret, "***")
        return text

    @staticmethod
    def _fault(wanted: Wanted, what: str, hint: str, details: tuple[str, ...] = ()) -> SourceError:
        return SourceError(
            f"{wanted.label}: {wanted.address.shown} {what}", where=wanted.where, hint=hint, details=details
        )


def host_certificates(network: Network, host: str) -> str:
    """The certificates that the operator mounted for a host; "" for none.

    Raises:
        ConfigError: they cannot be read.
    """
    if network.tls_certs is None:
        return ""
    file = network.tls_certs / host.strip("[]")
    if host.startswith(".") or not file.is_file():
        return ""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the certificates cannot be read", where=f"BECALM_TLS_CERTS_DIR/{host}") from error


def proxies(network: Network, credential: Credential | None) -> Mapping[str, str]:
    """The proxies for an address: those of its Secret instead of the sidecar's (Argo CD's `proxy.UpsertEnv`)."""
    if credential is None or not credential.proxy:
        return network.proxies
    both = {"HTTP_PROXY": credential.proxy, "HTTPS_PROXY": credential.proxy}
    return {**both, "NO_PROXY": credential.no_proxy} if credential.no_proxy else both


def _url(address: Address) -> str:
    query = address.text.partition("?")[2]
    return f"{address.normal}?{query}" if query else address.normal


def _bare(version: str) -> str:
    return version.strip().removeprefix("v").partition("+")[0]


def _docker_config(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("the registries' credentials cannot be read", where=str(path)) from error


def _written(home: Path, name: str, text: str) -> Path:
    path = home / name
    private.write(path, text.encode())
    return path
