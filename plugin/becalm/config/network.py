"""What the operator says about the network: which addresses apps may name, and where credentials are mounted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from becalm.config import load
from becalm.errors import ConfigError

#: Read on the sidecar; helm is given them for downloads only, in both spellings (Go reads either).
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Settings for downloads.

    Attributes:
        repositories: Argo CD's repository Secrets: folders of keys, or YAML files of manifests.
        registry_config: a Docker `config.json`, for OCI registries.
        repository_config: a Helm `repositories.yaml`, for HTTP repositories.
        ca_file: PEM certificates that are trusted as well.
        tls_certs: a folder of PEM files by host name, as Argo CD's ConfigMap `argocd-tls-certs-cm`.
        allowed: prefixes of repositories that apps may name; None allows every https:// and oci:// address.
        values_urls: prefixes of addresses of values files that apps may name.
        proxies: `HTTP_PROXY` and its like, by name in capitals.
        pass_credentials: send credentials also to other hosts that an index names (`--pass-credentials`).
    """

    repositories: Path | None = None
    registry_config: Path | None = None
    repository_config: Path | None = None
    ca_file: Path | None = None
    tls_certs: Path | None = None
    allowed: tuple[str, ...] | None = None
    values_urls: tuple[str, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_credentials: bool = False

    def for_programs(self, proxies: Mapping[str, str]) -> dict[str, str]:
        """The environment of a program that uses the network: proxies in both spellings, and whom it trusts.

        Args:
            proxies: by name in capitals: those of the sidecar, or those of one repository.
        """
        found = {name: value for key, value in proxies.items() for name in (key, key.lower())}
        return found if self.ca_file is None else {**found, "SSL_CERT_FILE": str(self.ca_file)}

    def variables(self) -> dict[str, str]:
        """Of the sidecar's variables, those that say what no option says."""
        found = dict(self.proxies)
        found |= {} if self.allowed is None else {"BECALM_CHART_REPOSITORIES": " ".join(self.allowed)}
        found |= {} if self.tls_certs is None else {"BECALM_TLS_CERTS_DIR": str(self.tls_certs)}
        return found


def from_variables(variables: Mapping[str, str], *, pass_credentials: bool = False) -> Network:
    """The settings of the sidecar's variables.

    Raises:
        ConfigError: a path is not there.
    """
    allowed = variables.get("BECALM_CHART_REPOSITORIES", "")
    return Network(
        repositories=_path(variables, "BECALM_REPOSITORIES_DIR"),
        registry_config=_path(variables, "BECALM_REGISTRY_CONFIG"),
        repository_config=_path(variables, "BECALM_REPOSITORY_CONFIG"),
        ca_file=_path(variables, "BECALM_CA_FILE"),
        tls_certs=_path(variables, "BECALM_TLS_CERTS_DIR"),
        allowed=load.words(allowed) if allowed.strip() else None,
        values_urls=load.words(variables.get("BECALM_VALUES_FILE_URLS", "")),
        proxies={
            name: value
            for name in _PROXIES
            if (value := variables.get(name, "") or variables.get(name.lower(), ""))
        },
        pass_credentials=pass_credentials,
    )


def checked(path: Path, where: str) -> Path:
    """A path that has to be there, absolute.

    Raises:
        ConfigError: it is not there.
    """
    if not path.exists():
        raise ConfigError(f"{path} is not there", where=where, hint="mount it, or take the setting away")
    return path.absolute()


def _path(variables: Mapping[str, str], name: str) -> Path | None:
    value = variables.get(name, "")
    return checked(Path(value), name) if value else None
