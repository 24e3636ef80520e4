"""What the operator says of the service, in variables."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from becalm.config import load
from becalm.errors import ConfigError
from becalm.service import client
from becalm.web import server
from becalm.web.server import Address

_WEB = "BECALM_WEB_ADDRESS"
#: A group's limit of processor time: "200000 100000" is two processors (Linux, cgroup v2 cpu.max).
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of the service.

    `socket` is where it listens, `concurrency` how many renders run at a time, and `queue` how many wait. A render
    that has waited and run for `deadline` seconds in all is given up. `web` is where health, metrics and page are,
    None for nowhere, `has_page` whether the page is there, `web_names` by which names it may be asked for. `log_json` says how lines of the log are written.
    """

    socket: Path = Path(client.DEFAULT)
    concurrency: int = 1
    queue: int = 200
    deadline: float = 55.0
    web: Address | None = None
    has_page: bool = True
    web_names: tuple[str, ...] = ()
    log_json: bool = True


def read(variables: Mapping[str, str]) -> Settings:
    """The settings of the environment.

    Raises:
        ConfigError: a variable is wrong.
    """
    socket = variables.get(client.SOCKET, "") or client.DEFAULT
    if not socket.startswith("/"):
        raise ConfigError(
            "the socket is no absolute path", where=client.SOCKET, hint=f"leave it at {client.DEFAULT}"
        )
    return Settings(
        socket=Path(socket),
        concurrency=load.number(variables, "BECALM_CONCURRENCY", processors(), least=1),
        queue=load.number(variables, "BECALM_QUEUE", Settings().queue),
        deadline=float(load.number(variables, "BECALM_DEADLINE", int(Settings().deadline), least=1)),
        web=server.address(variables.get(_WEB, "") or server.DEFAULT_ADDRESS, where=_WEB),
        has_page=_one_of(variables, "BECALM_WEB_PAGE", ("on", "off")) == "on",
        web_names=load.words(variables.get("BECALM_WEB_NAMES", "")),
        log_json=_one_of(variables, "BECALM_LOG", ("json", "text")) == "json",
    )


def processors() -> int:
    """How many processors this process may use, by its affinity and by its group's quota; at least 1."""
    number = len(os.sched_getaffinity(0))
    try:
        quota, period = _QUOTA.read_text("ascii").split()
    except (OSError, ValueError):
        return number
    return max(1, min(number, math.ceil(int(quota) / int(period)))) if quota.isdigit() else number


def _one_of(variables: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = variables.get(name, "") or choices[0]
    if text not in choices:
        raise ConfigError(f"{text!r} is not allowed", where=name, hint=f"write {' or '.join(choices)}")
    return text
