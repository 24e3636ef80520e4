"""Objects that somebody took from a cluster: `kubectl get -o yaml` or `-o json`, one or more documents or lists."""

from __future__ import annotations

from becalm.manifests.objects import Object, objects
from becalm.manifests.stream import split


def gathered(text: str, *, where: str) -> list[Object]:
    """The objects, those of lists one by one.

    Args:
        text: YAML or JSON.
        where: the file, for messages.

    Raises:
        ManifestError: it is no YAML, or something in it is no object.
    """
    return [obj for _, obj in objects(split(text, where=where))]
