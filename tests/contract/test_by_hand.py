"""What a person meets who renders a chart by hand, from the directory that it is in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from children import inside

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("BECALM_TEST_TOOLS", ROOT / ".tools"))
HELM = TOOLS / "helm-4.1.4" / "helm"
KUBECTL = TOOLS / "kubectl-1.37.1" / "kubectl"
OPTIONS = ("--app=a", "--namespace=n", "--throwaway-seed")
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
DRAWS = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\nstringData: {p: {{ randAlphaNum 16 | quote }}}\n"
)
YEAR = (
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: year}\ndata: {year: {{ now | date "2006" | quote }}}\n'
)


@pytest.fixture
def becalm(tmp_path):
    """Writes the chart `shop` of some templates, and runs becalm beside it."""

    def run(command, *templates, path="shop", more=(), **env):
        (tmp_path / "shop/templates").mkdir(parents=True)
        (tmp_path / "shop/Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
        (tmp_path / "shop/values.yaml").touch()  # Kustomize wants one
        (tmp_path / "shop/templates/all.yaml").write_text("---\n".join(templates))
        given = {**os.environ, "BECALM_HELM": str(HELM), "BECALM_CACHE_DIR": "off", **env}
        return inside([command, path, *OPTIONS, *more], cwd=tmp_path, env=given)

    return run


@pytest.mark.parametrize("templates", [(PLAIN,), (PLAIN, DRAWS)])
@pytest.mark.parametrize("command", ["render", "verify"])
def test_a_chart_is_named_from_the_current_directory(becalm, command, templates):
    done = becalm(command, *templates)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_wrong_with_it_is_told_in_helms_words(becalm):
    done = becalm("render", DRAWS, more=["--set=a={b"])
    assert done.returncode == 5
    assert "failed parsing --set data" in done.stderr


def test_a_field_that_shows_the_year_is_no_fault(becalm):
    """Stock helm renders the same year twice; becalm renders that of the instant."""
    done = becalm("verify", YEAR, DRAWS)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "stock helm's differ in 1 field.\n1 field shows a time that stock helm moves on later.\n"
        in done.stdout
    )


def test_so_it_is_where_kustomize_inflates_the_chart(becalm, tmp_path):
    (tmp_path / "kustomization.yaml").write_text(
        "helmGlobals: {chartHome: .}\nhelmCharts:\n- {name: shop, releaseName: a}\n"
    )
    done = becalm("verify", YEAR, path=".", more=[f"--kustomize={KUBECTL}", "--build-options=--enable-helm"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 field shows a time" in done.stdout


def test_the_option_wins_over_the_variable_for_helm(becalm):
    done = becalm("render", PLAIN, more=[f"--helm={HELM}"], BECALM_HELM="helm-that-is-not-there")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_helm_of_the_variable_is_found_from_the_current_directory(becalm, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").symlink_to(HELM)
    done = becalm("render", PLAIN, BECALM_HELM="bin/helm")
    assert (done.returncode, done.stderr) == (0, "")
