"""Which file of a chart is what, by its path."""

from __future__ import annotations

import pytest

from becalm.sources.chart import chart_prefix, is_template, template_path
from becalm.sources.layout import is_packed_subchart


@pytest.mark.parametrize(
    ("path", "prefix", "rest"),
    [
        ("templates/x.yaml", "", "templates/x.yaml"),
        ("templates/a/b/NOTES.txt", "", "templates/a/b/NOTES.txt"),
        ("templates/charts/x.yaml", "", "templates/charts/x.yaml"),
        ("templates/.x", "", "templates/.x"),
        ("templates/x.prov", "", "templates/x.prov"),
        ("charts/foo/templates/x.yaml", "charts/foo/", "templates/x.yaml"),
        ("charts/foo/charts/bar/templates/x.yaml", "charts/foo/charts/bar/", "templates/x.yaml"),
        ("charts/foo.d/templates/x.yaml", "charts/foo.d/", "templates/x.yaml"),
    ],
)
def test_templates(path, prefix, rest):
    """Templates of the chart and of unpacked subcharts, split into owner and path."""
    assert is_template(path)
    assert (chart_prefix(path), template_path(path)) == (prefix, rest)


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("values.yaml", ""),
        ("templates", ""),
        ("files/templates/x.yaml", ""),
        ("files/charts/foo/templates/x.yaml", ""),
        ("crds/x.yaml", ""),
        ("charts/foo/values.yaml", "charts/foo/"),
        ("charts/foo/files/templates/x.yaml", "charts/foo/"),
        ("charts/_foo/templates/x.yaml", ""),
        ("charts/.foo/templates/x.yaml", ""),
        ("charts/foo/charts/_bar/templates/x.yaml", "charts/foo/"),
        ("charts/templates/x.yaml", "charts/templates/"),
        ("charts/foo.tgz/templates/x.yaml", ""),
        ("charts/foo/templates/x.prov", ""),
        ("charts/foo-1.tgz", ""),
    ],
)
def test_what_is_no_template(path, prefix):
    """Everything else, with the chart that it belongs to."""
    assert not is_template(path)
    assert chart_prefix(path) == prefix
    assert prefix + template_path(path) == path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("charts/x-1.tgz", True),
        ("charts/foo/charts/x-1.tgz", True),
        ("charts/_x-1.tgz", False),
        ("charts/.x-1.tgz", False),
        ("charts/foo/x-1.tgz", False),
        ("charts/_foo/charts/x-1.tgz", False),
        ("charts/x-1.tar.gz", False),
        ("charts/x-1.tgz.prov", False),
        ("x-1.tgz", False),
        ("files/charts/x-1.tgz", False),
    ],
)
def test_packed_subcharts(path, expected):
    """Only `.tgz` files directly in a `charts/` that Helm looks into, and not hidden ones."""
    assert is_packed_subchart(path) is expected
