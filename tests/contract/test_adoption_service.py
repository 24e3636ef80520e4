"""Renders for Argo CD use the pins: by themselves, from the service, from its cache, and through `becalm-helm`."""

from __future__ import annotations

import children
import pytest
import yaml
from adoption import NAME, objects, stored
from applications import HELM
from children import inside
from services import Sidecar


@pytest.fixture
def sidecar(tmp_path) -> Sidecar:
    one = Sidecar(tmp_path)
    one.env["BECALM_RULES"] = "-all"
    return one


def adopt(sidecar: Sidecar, value: str, *words: str) -> str:
    """Take over a value that the application has in the cluster, and the output that is due."""
    live = sidecar.top / "live.yaml"
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: pw}}\nstringData: {{pw: {value}, a: usual}}\n"
    live.write_text(yaml.safe_dump_all(map(stored, objects(text))))
    argv = [
        "adopt",
        sidecar.app,
        "--app=my-app",
        "--namespace=space",
        f"--live={live}",
        f"--seed={sidecar.top / 'seed'}",
    ]
    done = inside([*argv, f"--helm={HELM}", *words], cwd=sidecar.top, env=sidecar.env)
    assert (done.returncode, done.stderr) == (0, "")
    return value


def password(done) -> str:
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)[0]["stringData"]["pw"]


def test_generate_uses_pins_by_itself(sidecar):
    derived = password(sidecar.generate())
    wanted = adopt(sidecar, "taken-over-password")
    done = sidecar.generate()
    assert (password(done), done.stderr) == (wanted, "")
    (sidecar.app / NAME).unlink()
    assert password(sidecar.generate()) == derived


def test_a_changed_file_is_another_answer_of_the_service_and_its_cache(sidecar):
    with sidecar.serving():
        derived = password(sidecar.generate())
        for wanted in ("first-password", "second-password"):
            adopt(sidecar, wanted)
            assert [password(sidecar.generate()) for _ in range(2)] == [wanted, wanted]
        text = (sidecar.app / NAME).read_text()
        (sidecar.app / NAME).write_text(text.replace("      sealed: ", "      sealed: A", 1))
        done = sidecar.generate()
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{NAME}" in done.stderr
        assert "is damaged" in done.stderr
        (sidecar.app / NAME).unlink()
        assert password(sidecar.generate()) == derived
    outcomes = [one["outcome"] for one in sidecar.renders(7)]
    assert outcomes == ["rendered", "rendered", "cached", "rendered", "cached", "failed", "cached"]
    assert "second-password" not in sidecar.log.read_text()


def test_pins_of_a_chart_from_elsewhere_are_in_the_directory_of_the_application(sidecar):
    charts = sidecar.root / "charts"
    charts.mkdir()
    sidecar.app.rename(charts / "web")
    sidecar.app.mkdir()
    given = [{"name": "chart.path", "string": "../../charts/web"}]
    file = sidecar.top / "parameters.yaml"
    file.write_text(yaml.safe_dump(given))
    (sidecar.root / ".git").mkdir()
    with sidecar.serving():
        for wanted in ("first-password", "second-password"):
            adopt(sidecar, wanted, f"--parameters={file}")
            assert (sidecar.app / NAME).exists()
            assert password(sidecar.generate(*given)) == wanted


def test_the_answer_of_the_service_warns_of_pins_too(sidecar):
    adopt(sidecar, "first-password")
    (sidecar.app / "templates" / "a.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    )
    with sidecar.serving():
        for _ in range(2):
            done = sidecar.generate()
            assert done.returncode == 0
            assert "1 pin does not match what is drawn: Secret/space/pw stringData.pw" in done.stderr


def test_becalm_helm_uses_pins(sidecar):
    wanted = adopt(sidecar, "taken-over-password")
    words = ["template", "my-app", sidecar.app, "--namespace=space"]
    done = children.run(words, env=sidecar.env, cwd=sidecar.top, program="becalm.dropin.main")
    assert password(done) == wanted
