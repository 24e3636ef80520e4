"""The shared cache with a real redis-server, where there is one in the PATH (Debian's package redis-server)."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest
import servers
from services import Sidecar

PASSWORD = "of-this-redis"
pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server")


class Redis:
    def __init__(self, top) -> None:
        self.top = top
        self.port = servers.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/1"
        self.process: subprocess.Popen | None = None

    def start(self, *options: str) -> None:
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
             "--requirepass", PASSWORD, "--dir", str(self.top), *options],
            stdout=subprocess.DEVNULL, env=dict(os.environ),
        )  # fmt: skip
        until = time.monotonic() + 20
        while "PONG" not in self.ask("ping"):
            assert time.monotonic() < until
            time.sleep(0.05)

    def ask(self, *words: str) -> str:
        argv = ["redis-cli", "-p", str(self.port), "-a", PASSWORD, "--no-auth-warning", "-n", "1", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False).stdout

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)


@pytest.fixture
def redis(tmp_path):
    one = Redis(tmp_path)
    one.start()
    yield one
    one.stop()


def test_replicas_share_and_live_through_its_end(tmp_path, redis):
    sidecar = Sidecar(tmp_path)
    given = {"BECALM_REDIS_URL": redis.url, "BECALM_REDIS_PASSWORD": PASSWORD, "BECALM_CACHE_DIR": "off"}
    outcomes = []

    def outcome(**more: str) -> str:
        done = sidecar.generate(timeout=30, **{**given, **more})
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == expected
        found = sidecar.renders(len(outcomes) + 1)[-1]["outcome"]
        outcomes.append(found)
        return found

    expected = sidecar.generate(BECALM_SOCKET="off", BECALM_CACHE_DIR="off").stdout
    with sidecar.serving():
        assert outcome() == "rendered"
        assert outcome() == "cached"
        assert redis.ask("dbsize").strip() == "1"
        assert 0 < int(redis.ask("ttl", redis.ask("keys", "*").strip())) <= 30 * 86_400
        assert outcome(BECALM_REDIS_PASSWORD="wrong") == "rendered"
        redis.stop()
        assert outcome() == "rendered"
        redis.start("--maxmemory", "100kb", "--maxmemory-policy", "noeviction")
        assert outcome() == "rendered"
        assert outcome() == "rendered"
        assert redis.ask("dbsize").strip() == "0"
        redis.ask("config", "set", "maxmemory", "0")
        assert outcome() == "rendered"
        assert outcome() == "cached"
    assert PASSWORD not in sidecar.log.read_text()
