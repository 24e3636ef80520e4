"""Brings values files from addresses: bounded, checked against their digest, and without credentials for others.

Argo CD lets helm fetch them while it renders, so they are neither bounded nor seen by its cache. Here they are
fetched before, by the standard library, which is enough for one file: a redirect is followed to allowed addresses
only, and credentials are those of a repository Secret that the address lies below; they go to no other host.
"""

from __future__ import annotations

import base64
import hashlib
import ssl
import tempfile
import threading
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urljoin

from becalm.config.network import Network
from becalm.errors import PluginError, SourceError, ToolTimeoutError
from becalm.sources import addresses
from becalm.sources.credentials import Credential, Credentials
from becalm.sources.download import host_certificates, proxies
from becalm.sources.remote_values import RemoteFile, parse

LARGEST = 10 * 1024 * 1024
_MOST_REDIRECTS = 5


def fetch(
    file: RemoteFile, *, network: Network, credentials: Credentials, timeout: float, work: Path
) -> Path:
    """Download a values file to a private one below `work`.

    Args:
        file: which one.
        network: the operator's settings.
        credentials: those that serve the app's project.
        timeout: seconds for all of it.
        work: a private directory.

    Raises:
        SourceError: it cannot be had, is too large, or does not have its digest.
        ToolTimeoutError: the server did not answer in time.
    """
    found: list[bytes | Exception] = []

    def run() -> None:
        try:
            found.append(_download(file, network, credentials, timeout))
        except Exception as error:  # noqa: BLE001  # raised again below, in the thread that waits
            found.append(error)

    # Time limits of sockets count from byte to byte. A server that sends one now and then is left behind like this.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout)
    if not found:
        raise ToolTimeoutError(
            f"{file.address.shown} did not answer within {timeout:g} s",
            where=file.where,
            hint="check the server and the network of the sidecar, or keep the file in the repository",
        )
    data = found[0]
    if isinstance(data, Exception):
        raise data
    if file.digest and hashlib.sha256(data).hexdigest() != file.digest:
        raise SourceError(
            f"{file.address.shown} does not have the digest that it is pinned to",
            where=file.where,
            hint="look at what changed, then write the new digest",
        )
    path = Path(tempfile.mkdtemp(prefix="remote-", dir=work)) / "values.yaml"
    path.write_bytes(data)
    return path


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to us."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


def _download(file: RemoteFile, network: Network, credentials: Credentials, timeout: float) -> bytes:
    url, address = file.address.text, file.address
    for _ in range(_MOST_REDIRECTS + 1):
        credential = credentials.covering(address)
        request = urllib.request.Request(url, headers={"User-Agent": "becalm"})  # noqa: S310  # http(s) only: `parse`
        if credential is not None and (credential.username or credential.password):
            pair = f"{credential.username}:{credential.password}".encode()
            request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
        try:
            with _opener(network, credential, address).open(request, timeout=timeout) as answer:
                data: bytes = answer.read(LARGEST + 1)
        except urllib.error.HTTPError as error:
            to = error.headers.get("Location", "") if error.code in (301, 302, 303, 307, 308) else ""
            error.close()
            if not to:
                raise _fault(
                    file, f"answers {error.code}", "check the address, and the credentials"
                ) from None
            url = urljoin(url, to)
            address = parse(url, network.values_urls, where=f"{file.where}: redirect").address
            continue
        except ssl.SSLError as error:
            raise _untrusted(file, error) from error
        except (OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ssl.SSLError):
                raise _untrusted(file, reason) from error
            said = getattr(reason, "strerror", None) or type(reason).__name__
            raise _fault(file, f"cannot be reached: {said}", "check the address and the network") from error
        if len(data) > LARGEST:
            raise _fault(file, "holds more than 10 MiB", "make the file smaller")
        return data
    raise _fault(file, f"redirects more than {_MOST_REDIRECTS} times", "write the last address")


def _opener(
    network: Network, credential: Credential | None, address: addresses.Address
) -> urllib.request.OpenerDirector:
    given = proxies(network, credential)
    chosen = {"http": given.get("HTTP_PROXY", ""), "https": given.get("HTTPS_PROXY", "")}
    if urllib.request.proxy_bypass_environment(address.authority, {"no": given.get("NO_PROXY", "")}):  # type: ignore[attr-defined]  # documented only in the source; the rules of NO_PROXY are not few
        chosen = {}
    return urllib.request.build_opener(
        urllib.request.ProxyHandler({scheme: proxy for scheme, proxy in chosen.items() if proxy}),
        urllib.request.HTTPSHandler(context=_context(network, credential, address.host)),
        _NoRedirect,
    )


def _context(network: Network, credential: Credential | None, host: str) -> ssl.SSLContext:
    pem = host_certificates(network, host)
    context = ssl.create_default_context(cadata=pem or None)
    if network.ca_file is not None and not pem:
        context.load_verify_locations(network.ca_file)
    if credential is not None and credential.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _untrusted(file: RemoteFile, error: ssl.SSLError) -> PluginError:
    return _fault(
        file,
        f"cannot be trusted: {getattr(error, 'verify_message', '') or error.reason}",
        "give the operator's CA certificates by BECALM_CA_FILE or BECALM_TLS_CERTS_DIR",
    )


def _fault(file: RemoteFile, what: str, hint: str) -> SourceError:
    return SourceError(f"{file.address.shown} {what}", where=file.where, hint=hint)
