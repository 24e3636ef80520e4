"""What a directory holds: one rule, for rendering and for Argo CD's discovery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from becalm.errors import SourceError

Kind = Literal["helm", "kustomize", "chain", "directory", ""]
#: The names that Kustomize looks for (sigs.k8s.io/kustomize, api/konfig, `RecognizedKustomizationFileNames`).
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
#: What Argo CD's own source of plain directories reads (reposerver/repository, `manifestFile`).
MANIFESTS = (".yaml", ".yml", ".json")
CHART = "Chart.yaml"
_KIND = re.compile(rb"\bkind[\"']?\s*:")
_LOOK = 65_536
_MOST_LOOKED_AT = 1000


def kind(path: Path, *, recurse: bool = False) -> Kind:
    """What is there: a chart, a Kustomization, both (a chain), else manifests; "" for nothing of these.

    Args:
        path: a directory or a file; a file is a packed chart.
        recurse: whether manifests further below count.
    """
    if not path.is_dir():
        return "helm"
    has_chart = (path / CHART).is_file()
    if any((path / name).is_file() for name in KUSTOMIZATIONS):
        return "chain" if has_chart else "kustomize"
    if has_chart:
        return "helm"
    found = path.rglob("*") if recurse else path.iterdir()
    return "directory" if any(one.suffix in MANIFESTS and one.is_file() for one in found) else ""


def require(
    path: Path, where: str, *, wanted: Kind = "", recurse: bool = False, has_chart: bool = False
) -> Kind:
    """The kind of a source that becalm renders.

    Args:
        path: a directory or a file.
        where: the same for messages.
        wanted: what the application or a person says it is; "" to look.
        recurse: whether manifests further below count.
        has_chart: whether there is a chart elsewhere, which is taken instead of one here.

    Raises:
        SourceError: it holds nothing of that sort, or more than one kustomization file.
    """
    if has_chart and wanted in ("", "helm", "chain"):
        has_overlay = any((path / name).is_file() for name in KUSTOMIZATIONS)
        return "chain" if wanted == "chain" or (has_overlay and not wanted) else "helm"
    found = wanted or kind(path, recurse=recurse)
    if not found:
        is_jsonnet = any(one.suffix == ".jsonnet" for one in path.iterdir())
        hint = "check the path, or set directory.recurse for what is further below"
        raise SourceError(
            f"there is no {CHART}, no {', '.join(KUSTOMIZATIONS)}, and no .yaml, .yml or .json file, in this directory",
            where=where,
            hint="Jsonnet is not rendered: render it to YAML" if is_jsonnet else hint,
        )
    if found in ("helm", "chain") and path.is_dir() and not (path / CHART).is_file():
        raise SourceError(
            f"there is no {CHART} in this directory", where=where, hint="check the path, or becalm.source"
        )
    if found in ("kustomize", "chain"):
        kustomization(path, where)
    if found == "directory" and not path.is_dir():
        raise SourceError("this is no directory", where=where, hint="check the path, or becalm.source")
    return found


def kustomization(directory: Path, where: str) -> Path:
    """The kustomization file of a directory.

    Raises:
        SourceError: there is none, or more than one.
    """
    found = [directory / name for name in KUSTOMIZATIONS if (directory / name).is_file()]
    if not found:
        raise SourceError(
            f"there is no {', '.join(KUSTOMIZATIONS)} in this directory",
            where=where,
            hint="check the path, or becalm.source",
        )
    if len(found) > 1:
        # As Kustomize has it (kustomize/commands/internal/kustfile, `validate`; api/internal/target).
        raise SourceError(
            f"there is more than one kustomization file: {' and '.join(path.name for path in found)}",
            where=where,
            hint="keep one of them",
        )
    return found[0]


def looks_rendered(path: Path) -> bool:
    """Whether a directory of manifests holds any: a file that speaks of a kind, for Argo CD's question to all plugins."""
    for one in sorted(path.iterdir())[:_MOST_LOOKED_AT]:
        if one.suffix in MANIFESTS and one.is_file():
            with one.open("rb") as file:
                if _KIND.search(file.read(_LOOK)):
                    return True
    return False


def repository(directory: Path) -> Path:
    """The Git checkout around a directory, else the directory itself."""
    real = directory.resolve()
    return next((one for one in (real, *real.parents) if (one / ".git").exists()), real)
