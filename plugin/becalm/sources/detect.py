"""What a directory holds: one rule, for rendering and for Argo CD's discovery."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from becalm.errors import SourceError

Kind = Literal["helm", "kustomize", "directory", ""]
#: The names that Kustomize looks for (sigs.k8s.io/kustomize, api/konfig, `RecognizedKustomizationFileNames`).
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
#: What Argo CD's own source of plain directories reads (reposerver/repository, `manifestFile`).
MANIFESTS = (".yaml", ".yml", ".json", ".jsonnet")


def kind(path: Path, *, recurse: bool = False) -> Kind:
    """A chart (Chart.yaml, or an archive), else a Kustomization, else manifests; "" for nothing of these.

    Args:
        path: a directory or a file.
        recurse: whether manifests further below count.
    """
    if not path.is_dir() or (path / "Chart.yaml").is_file():
        return "helm"
    if any((path / name).is_file() for name in KUSTOMIZATIONS):
        return "kustomize"
    found = path.rglob("*") if recurse else path.iterdir()
    return "directory" if any(one.suffix in MANIFESTS and one.is_file() for one in found) else ""


def require(path: Path, where: str, *, recurse: bool = False) -> Kind:
    """The kind of a source that becalm renders.

    Raises:
        SourceError: it holds nothing of that sort.
    """
    found = kind(path, recurse=recurse)
    if found == "kustomize":
        raise SourceError(
            "Kustomizations are not rendered yet",
            where=where,
            hint="render it with Argo CD's own Kustomize, and its charts with becalm-helm",
        )
    if not found:
        raise SourceError(
            "there is no Chart.yaml, and no .yaml, .yml or .json file, in this directory",
            where=where,
            hint="check the path, or set directory.recurse for what is further below",
        )
    return found
