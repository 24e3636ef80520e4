"""Readers of the service: what is kept costs no fork and no waiting, and whatever becomes of a reader, the render is right."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from services import Sidecar, children, children_of, gone

OTHER = {"name": "values", "string": "a: other\n"}


@pytest.fixture
def sidecar(tmp_path):
    return Sidecar(tmp_path)


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does nothing while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def keep(sidecar: Sidecar, *parameters: dict) -> str:
    """Render, so that the answer is kept; the output."""
    before = len(sidecar.renders(0))
    done = sidecar.generate(*parameters)
    assert (done.returncode, done.stderr) == (0, "")
    sidecar.renders(before + 1)
    return done.stdout


def test_what_is_kept_is_read_by_one_process_for_all(sidecar):
    with sidecar.serving(BECALM_CONCURRENCY="2") as service:
        first = keep(sidecar)
        readers = children(service)
        assert len(readers) == 1
        assert [sidecar.generate().stdout for _ in range(3)] == [first] * 3
        assert children(service) == readers
        assert [one["outcome"] for one in sidecar.renders(4)] == ["rendered", *["cached"] * 3]


def test_it_reads_for_one_application_as_if_there_had_been_no_other(sidecar):
    """Name, parameters and directory are of the order, not of the one before."""
    with sidecar.serving(BECALM_CONCURRENCY="1"):
        mine, others = keep(sidecar), keep(sidecar, OTHER)
        assert mine != others
        for _ in range(2):
            assert sidecar.generate().stdout == mine
            assert sidecar.generate(OTHER).stdout == others
        renamed = sidecar.generate(ARGOCD_APP_NAME="another-app")
        assert renamed.returncode == 0
        assert renamed.stdout not in (mine, others)
        assert sidecar.generate(ARGOCD_APP_PARAMETERS="{").returncode == 2
        assert sidecar.generate().stdout == mine
        outcomes = [one["outcome"] for one in sidecar.renders(9)]
    assert outcomes == [*["rendered"] * 2, *["cached"] * 4, "rendered", "failed", "cached"]


def test_what_is_kept_does_not_wait_for_what_is_rendered(sidecar):
    with sidecar.serving(BECALM_CONCURRENCY="1"):
        kept = keep(sidecar)
        slow = sidecar.popen(BECALM_HELM=sidecar.held_helm())
        sidecar.begun()
        assert sidecar.generate(timeout=20).stdout == kept
        assert slow.poll() is None
        sidecar.release()
        assert slow.communicate(timeout=60)[0] == kept


def test_a_reader_that_is_killed_while_it_has_nothing_to_do_is_replaced(sidecar):
    with sidecar.serving() as service:
        kept = keep(sidecar)
        (reader,) = children(service)
        os.kill(reader, signal.SIGKILL)
        assert gone([reader])
        assert sidecar.generate().stdout == kept
        assert reader not in children(service)


def test_an_order_whose_reader_is_killed_is_rendered(sidecar):
    with sidecar.serving() as service:
        kept = keep(sidecar)
        (reader,) = children(service)
        with stopped(reader):
            client = sidecar.popen()
            time.sleep(0.5)
            os.kill(reader, signal.SIGKILL)
            out, err = client.communicate(timeout=60)
        assert (client.returncode, out, err) == (0, kept, "")
        # The render looks for itself.
        assert [one["outcome"] for one in sidecar.renders(2)] == ["rendered", "cached"]
        assert reader not in children(service)


def test_a_reader_that_hangs_is_ended_at_the_deadline(sidecar):
    with sidecar.serving(BECALM_DEADLINE="3") as service:
        keep(sidecar)
        (reader,) = children(service)
        with stopped(reader):
            late = sidecar.generate(timeout=30)
            assert late.returncode == 6
            assert "did not end within 3 s" in late.stderr
            assert gone([reader])
        assert sidecar.generate().returncode == 0
        assert [one["outcome"] for one in sidecar.renders(3)] == ["rendered", "timeout", "cached"]


def test_a_client_that_goes_away_leaves_no_reader_behind(sidecar):
    with sidecar.serving() as service:
        kept = keep(sidecar)
        (reader,) = children(service)
        with stopped(reader):
            client = sidecar.popen()
            time.sleep(0.5)
            client.kill()
            client.communicate(timeout=20)
            assert gone([reader], 20)
        assert sidecar.generate().stdout == kept
        assert [one["outcome"] for one in sidecar.renders(3)] == ["rendered", "cancelled", "cached"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_readers_end_with_the_service(sidecar, number):
    with sidecar.serving() as service:
        keep(sidecar)
        readers = children(service)
        service.send_signal(number)
        service.wait(30)
        assert gone(readers)


def test_a_reader_keeps_nothing_of_an_order_open(sidecar):
    """Neither its directory, which Argo CD removes, nor the files of its output."""
    with sidecar.serving() as service:
        for _ in range(3):
            keep(sidecar)
        (reader,) = children(service)
        links = [str(link.readlink()) for link in Path(f"/proc/{reader}/fd").iterdir()]
        assert not [link for link in links if "memfd" in link or str(sidecar.root) in link]
        assert Path(f"/proc/{reader}/cwd").readlink() == Path("/")


def test_what_was_wrong_with_the_cache_is_told_with_the_render(sidecar):
    with sidecar.serving():
        first = keep(sidecar)
        (entry,) = (sidecar.top / "cache" / "renders").iterdir()
        entry.write_bytes(entry.read_bytes()[:-1])
        second = sidecar.generate()
        assert second.stdout == first
        assert "was damaged, and is made anew" in second.stderr
        told = sidecar.renders(2)[1]
    assert told["outcome"] == "rendered"
    assert (
        "was damaged" in told["warnings"][0] if isinstance(told["warnings"], list) else told["warnings"] == 1
    )


def test_one_that_has_waited_looks_again(sidecar):
    """What was not there when it came may be there when its turn comes."""
    with sidecar.serving(BECALM_CONCURRENCY="1"):
        slow = sidecar.popen(OTHER, BECALM_HELM=sidecar.held_helm())
        sidecar.begun()
        waiting = sidecar.popen()
        time.sleep(1.5)
        alone = sidecar.generate(BECALM_SOCKET="off")
        assert alone.returncode == 0
        sidecar.release()
        assert slow.communicate(timeout=60)[0]
        assert waiting.communicate(timeout=60) == (alone.stdout, "")
        told = {one["outcome"]: one for one in sidecar.renders(2)}
    assert set(told) == {"rendered", "cached"}
    assert told["cached"]["stages"]["queue"] > 1


def test_a_render_is_a_process_that_has_read_nothing_else(sidecar):
    with sidecar.serving() as service:
        keep(sidecar)
        client = sidecar.popen(OTHER, BECALM_HELM=sidecar.held_helm())
        (helm,) = sidecar.begun()
        (reader,) = [one for one in children(service) if not children_of(one)]
        (render,) = [one for one in children(service) if helm in children_of(one)]
        assert reader != render
        sidecar.release()
        assert client.communicate(timeout=60)[0]
