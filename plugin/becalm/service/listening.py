"""The service's side of its socket: who may connect, and the messages that `client` sends, with their files."""

from __future__ import annotations

import array
import os
import resource
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path

from becalm.errors import ConfigError
from becalm.service import client
from becalm.service.child import Order

_FILES = 3
_CHUNK = 1 << 18
_MOST_FILES = 1 << 16


@dataclass(slots=True, eq=False)
class Message:
    """One message on its way; its files are open until `close`."""

    _data: bytearray = field(default_factory=bytearray)
    _files: list[int] = field(default_factory=list)

    def receive(self, connection: socket.socket) -> int:
        """Take what has come; the number of bytes, 0 where the connection has ended.

        Raises:
            BlockingIOError: nothing has come.
        """
        try:
            data, ancillary, _, _ = connection.recvmsg(_CHUNK, socket.CMSG_SPACE(_FILES * 4))
        except BlockingIOError:
            raise
        except OSError:
            return 0
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._files += list(numbers)
        self._data += data
        return len(data)

    def order(self) -> Order | None:
        """The render that is asked for, once its message is complete; None before.

        Raises:
            ValueError: the message is too long, or has not the files that it should have.
        """
        length = int.from_bytes(self._data[:4], "big")
        if length > client.LARGEST or len(self._data) > 4 + length or len(self._files) > _FILES:
            raise ValueError("what came is no message")
        if len(self._data) < 4 or len(self._data) < 4 + length:
            return None
        if len(self._files) != _FILES:
            raise ValueError("files are missing")
        variables = environment(bytes(self._data[4:]))
        self._data = bytearray()
        directory, output, errors = self._files
        return Order(directory=directory, output=output, errors=errors, environment=variables)

    def close(self) -> None:
        """Close the files that came."""
        for number in self._files:
            os.close(number)
        self._files = []


def environment(data: bytes) -> dict[bytes, bytes]:
    """An environment from its entries, separated by NUL; of two with one name the first counts, as it does for getenv(3)."""
    entries = reversed(data.split(b"\0"))
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def accept(listener: socket.socket) -> socket.socket | None:
    """A connection from a process of our own user; None where there is none.

    Raises:
        OSError: none can be opened, though one waits.
    """
    try:
        connection, _ = listener.accept()
    except (BlockingIOError, ConnectionAbortedError):
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    if user != os.geteuid():
        connection.close()
        return None
    connection.setblocking(False)
    return connection


def listen(path: Path) -> socket.socket:
    """A socket in a directory that only we may enter.

    Raises:
        ConfigError: the directory belongs to somebody else, or a service listens there already.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.parent.lstat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ConfigError(
                "the directory is open to others",
                where=str(path.parent),
                hint="give the socket a directory of its own, mode 0700",
            )
        if _is_served(path):
            raise ConfigError(
                "another service listens there", where=str(path), hint="end it, or set BECALM_SOCKET"
            )
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(512)
    except OSError as error:
        raise ConfigError(
            f"the socket cannot be made: {error.strerror}", where=str(path), hint="set BECALM_SOCKET"
        ) from error
    listener.setblocking(False)
    return listener


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as other:
        # Where many wait already, even to connect would be to wait.
        other.setblocking(False)
        try:
            other.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True
        return True


def more_files() -> int:
    """Let this process open as many files as it may, within reason; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft >= most:
        return most
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most
