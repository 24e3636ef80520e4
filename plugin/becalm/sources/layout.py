"""Where things are inside a chart, by path alone (Helm's pkg/chart/v2/loader, `LoadFiles`).

Paths are POSIX and relative to the chart: a directory, or one archive. Subcharts that are not
packed lie in `charts/NAME/` and may hold subcharts themselves.
"""

from __future__ import annotations


def split_prefix(path: str) -> tuple[str, str]:
    """Split a path into the unpacked subchart it belongs to (`charts/foo/`) and the rest.

    What Helm does not load as part of a subchart belongs to the chart around it: names that
    begin with `_` or `.`, `.prov` files, and files directly in `charts/`.
    """
    prefix, rest = "", path
    while rest.startswith("charts/") and not rest.endswith(".prov"):
        name, slash, inner = rest.removeprefix("charts/").partition("/")
        if not slash or name[:1] in ("", "_", ".") or name.endswith(".tgz"):
            break
        prefix += f"charts/{name}/"
        rest = inner
    return prefix, rest


def is_template(path: str) -> bool:
    """Whether Helm runs this file as a template: of the chart or of an unpacked subchart."""
    return split_prefix(path)[1].startswith("templates/")


def chart_prefix(path: str) -> str:
    """The directory of the unpacked subchart that owns the path, with a slash; "" for the chart."""
    return split_prefix(path)[0]


def template_path(path: str) -> str:
    """The path below the chart or unpacked subchart that owns it: `templates/x.yaml`."""
    return split_prefix(path)[1]


def is_packed_subchart(path: str) -> bool:
    """Whether Helm opens this file as a packed subchart."""
    folder, _, name = split_prefix(path)[1].partition("/")
    return folder == "charts" and "/" not in name and name[:1] not in ("_", ".") and name.endswith(".tgz")
