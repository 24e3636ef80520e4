"""Whether the service can render: a chart of our own, again and again, through the socket as everybody does it."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from becalm.service import client

#: Marks renders of the sample, of which nobody is told. No application can set it.
MARK = b"BECALM_SAMPLE"
_SAMPLE = Path(__file__).resolve().parent / "sample"
_EVERY = 15.0
_SECONDS = 30.0
#: Without a success in this time the service is unhealthy: a queue that is long is no reason to end it, or to send it no more.
_PATIENCE = 120.0
_LONGEST = 300
#: Of the sample only, and no secret.
_SEED = bytes(range(32))
_NAMES = ("BECALM_HELM", "PATH", "HOME", "TMPDIR")


class Health:
    """Renders the sample every few seconds, in a thread of its own, from the first question on.

    Args:
        socket: of the service.
        variables: the operator's.
    """

    def __init__(self, socket: Path, variables: Mapping[str, str]) -> None:
        self._socket = str(socket)
        self._given = {name: variables[name] for name in _NAMES if name in variables}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._since = time.monotonic()
        self._success: float | None = None
        self._problem = "it has rendered nothing yet"

    def unhealthy(self) -> str | None:
        """Why the service should be started again; None where there is no reason."""
        self._begin()
        last = self._success or self._since
        return self._problem if self._problem and time.monotonic() - last > _PATIENCE else None

    def unready(self) -> str | None:
        """Why the service should get no renders; None where there is no reason."""
        self._begin()
        return self._problem or None

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self.look()
            time.sleep(_EVERY if not self._problem else 1.0)

    def look(self) -> None:
        """Render the sample once, and note how that went."""
        problem, has_failed = self._problem_now()
        if not problem:
            self._success = time.monotonic()
        # A sample that waits says nothing of the next render. Were the pod taken out for that, Argo CD would have one
        # repo-server less for all its applications, just when there is most to do.
        elif not has_failed and self._is_recent():
            problem = self._problem
        self._problem = problem

    def _is_recent(self) -> bool:
        return self._success is not None and time.monotonic() - self._success < _PATIENCE

    def _problem_now(self) -> tuple[str, bool]:
        """What is wrong, or "", and whether the sample failed; else it was turned away, or had no answer in time."""
        try:
            # A new one each time: what is old is taken for a leftover of a render.
            with tempfile.TemporaryDirectory(prefix="becalm-health-") as directory:
                seed = Path(directory) / "seed"
                seed.touch(mode=0o600)
                seed.write_bytes(_SEED)
                return self._render(seed)
        except OSError as error:
            return f"the sample cannot be prepared: {error.strerror}", True

    def _render(self, seed: Path) -> tuple[str, bool]:
        """Render the sample; as `_problem_now`."""
        variables = {
            **self._given, MARK.decode(): "1", "BECALM_SEED_FILE": str(seed), "BECALM_CACHE_DIR": "off",
            "ARGOCD_APP_NAME": "becalm-sample", "ARGOCD_APP_PROJECT_NAME": "becalm", "ARGOCD_APP_NAMESPACE": "becalm",
        }  # fmt: skip
        files = [os.open(_SAMPLE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            files += [os.memfd_create(name) for name in ("output", "errors")]
            environment = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
            answer = client.ask(self._socket, files, environment, _SECONDS)
            if answer is None:
                return "the service does not answer", False
            if answer == "exit 0":
                return "", False
            has_failed = answer.startswith("exit ")
            with suppress(OSError):
                told = os.pread(files[2], _LONGEST, 0).decode("utf-8", "replace")
                return " ".join(f"the sample cannot be rendered: {answer}: {told}".split()), has_failed
            return f"the sample cannot be rendered: {answer}", has_failed
        finally:
            for number in files:
                os.close(number)
