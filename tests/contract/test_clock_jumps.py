"""The clock of the whole machine jumps, days or years to and fro: every render is what it is without service and cache."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from applications import write
from services import Sidecar
from test_observed import Observed

from becalm.service.tidy import Tidy

DAY = 86_400
#: Loaded by every Python that the test starts: the clock is what the machine says, and what a file says is added.
CLOCK = """
import time
now, place = time.time, {place!r}
def jumped():
    with open(place) as file:
        return now() + float(file.read())
time.time = jumped
"""
TLS = (
    '{{ $c := genSelfSignedCert "x" nil nil 90 }}\napiVersion: v1\nkind: Secret\nmetadata: {name: tls}\n'
    "stringData: {crt: {{ $c.Cert | quote }}, key: {{ $c.Key | quote }}}\n"
)


@pytest.fixture
def jumping(tmp_path):
    sidecar = Observed(tmp_path)
    place = tmp_path / "offset"
    place.write_text("0")
    write(tmp_path, {"patched/sitecustomize.py": CLOCK.format(place=str(place))})
    sidecar.env["PYTHONPATH"] = str(tmp_path / "patched")
    write(sidecar.app, {"templates/tls.yaml": TLS})
    return sidecar


def jump(sidecar: Sidecar, days: float) -> None:
    place = sidecar.top / "offset"
    beside = place.with_name("next")
    beside.write_text(str(days * DAY))
    beside.replace(place)


def alone(sidecar: Sidecar) -> str:
    done = sidecar.generate(BECALM_SOCKET="off", BECALM_CACHE_DIR="off")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_render_is_right_whatever_the_clock_says(jumping):
    found = {}
    with jumping.serving() as service:
        jumping.until("/readyz", 200)
        for number, days in enumerate((0, 40, 0, -4000, 3000, 0.01, -0.01)):
            jump(jumping, days)
            expected = alone(jumping)
            done = jumping.generate(timeout=30)
            assert (done.returncode, done.stderr, done.stdout) == (0, "", expected), days
            jumping.renders(number + 1)
            found[days] = expected
            assert jumping.get("/healthz") == (200, "ok\n")
        assert jumping.get("/readyz") == (200, "ok\n")
        assert service.poll() is None
    assert len({found[0], found[40], found[-4000], found[3000]}) == 4
    assert found[0.01] == found[0]


@pytest.mark.parametrize("days", [400, -400])
def test_a_jump_during_a_render_changes_nothing_of_it(jumping, days):
    expected = alone(jumping)
    with jumping.serving(BECALM_DEADLINE="20") as service:
        running = jumping.popen(BECALM_HELM=jumping.slow_helm(1.5))
        jumping.begun()
        jump(jumping, days)
        # Leftovers are looked for as after any render that is given up.
        Tidy(jumping.top / "tmp", 80).up(time.time() + days * DAY)
        out, err = running.communicate(timeout=40)
        assert (running.returncode, err, out) == (0, "", expected)
        (record,) = jumping.renders()
        assert 0 < record["seconds"] < 20
        jump(jumping, 0)
        assert jumping.generate().stdout == expected
        assert service.poll() is None
    assert Path(jumping.top / "cache" / "renders").is_dir()
    assert jumping.leftovers() == []
