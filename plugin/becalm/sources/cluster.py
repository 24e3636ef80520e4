"""Objects of a cluster, found as helm's own `lookup` finds them (helm's pkg/engine/lookup_func.go)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from becalm.errors import SourceError
from becalm.manifests.objects import Object

#: Gets the JSON at a path of the API; None where there is nothing (status 404).
Get = Callable[[str], bytes | None]
_VERSION = re.compile(r"(?:[a-z0-9.-]+/)?[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Where the objects of a kind are: `path` of its API version, the plural `name`."""

    path: str
    name: str
    is_namespaced: bool


class Objects:
    """The objects of one cluster at one time: what was asked for once is not asked again.

    Args:
        get: asks the API server.
    """

    def __init__(self, get: Get) -> None:
        self._get = get
        self._lists: dict[str, list[Mapping[str, Any]]] = {}

    def resource(self, api_version: str, kind: str) -> Resource | None:
        """Where the objects of a kind are; None where the API version does not have it.

        Raises:
            SourceError: the cluster has no such API version, which helm would refuse.
        """
        if not _VERSION.fullmatch(api_version):
            raise SourceError(f"{api_version[:60]!r} is no API version", where="lookup")
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if path not in self._lists:
            found = self._object(path)
            if found is None:
                raise SourceError(
                    f"the cluster has no API version {api_version}, which `lookup` asks for",
                    where=f"{api_version} {kind}",
                    hint="helm would refuse it too; let the chart ask .Capabilities.APIVersions first",
                )
            resources = found.get("resources")
            self._lists[path] = (
                [one for one in resources if isinstance(one, dict)] if isinstance(resources, list) else []
            )
        for one in self._lists[path]:
            name = str(one.get("name", ""))
            if one.get("kind") == kind and "/" not in name:
                return Resource(path=path, name=name, is_namespaced=one.get("namespaced") is True)
        return None

    def find(self, api_version: str, kind: str, namespace: str, name: str) -> Object:
        """The object, the list where `name` is "", or an empty mapping.

        Raises:
            SourceError: a name cannot be part of a path, or the API version is not there.
            PluginError: as `Get`.
        """
        resource = self.resource(api_version, kind)
        if resource is None:
            return {}
        path = resource.path
        if resource.is_namespaced and namespace:
            path += f"/namespaces/{_segment(namespace)}"
        path += f"/{resource.name}" + (f"/{_segment(name)}" if name else "")
        found = self._object(path)
        if found is None:
            return {}
        return found if name else _list(found, api_version, kind)

    def _object(self, path: str) -> Object | None:
        text = self._get(path)
        if text is None:
            return None
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise SourceError("the API server's answer is no object", where=path)
        return value


def _segment(text: str) -> str:
    """A name as part of a path (k8s.io/apimachinery, `IsValidPathSegmentName`)."""
    if text in (".", "..") or "/" in text or "%" in text:
        raise SourceError(f"{text[:60]!r} is no name of an object", where="lookup")
    return quote(text, safe="")


def _list(found: Object, api_version: str, kind: str) -> Object:
    """A list whose items say what they are, as the decoder of helm's client makes them."""
    items = found.get("items")
    return {
        **found,
        "items": [
            {"apiVersion": api_version, "kind": kind, **item}
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, dict)
        ],
    }
