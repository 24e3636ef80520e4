"""What Argo CD starts for every render: hands it to the service and copies the answer.

It runs once for every render of every application, so this imports nothing that takes long to load (`_socket` instead
of `socket`, which loads `enum` and `selectors`; nothing of `__future__`, which is a module too). Where no service answers, the caller renders by itself.

The message is a length of four bytes and, separated by NUL, entries of the environment; with it go the directory and
two files in memory, for output and errors. They are copied only when the service says how the render ended, so that
whatever dies in between, nothing is printed in part.
"""

import _socket
import errno
import os
import sys

SOCKET = "BECALM_SOCKET"
DEFAULT = "/tmp/becalm/render.sock"  # noqa: S108  # in a directory that only we can write to, or not used
#: Of a message; the environment that Linux lets a process start with is smaller.
LARGEST = 4 * 1024 * 1024
_SECONDS_TO_CONNECT = 2.0
_CHUNK = 1024 * 1024
#: The service's own usual deadline, and how long it may take to say that it is over.
_DEADLINE = 55
_PATIENCE = 5.0
_BUSY = 11
_LATE = 6
_BROKEN_PIPE = 141
#: struct ucred: pid, uid and gid.
_CREDENTIALS = 12


def generate() -> int | None:
    """Let the service render the application in the current directory.

    Returns:
        The exit code, with output and errors printed; None where the service did not answer.
    """
    path = os.environ.get(SOCKET, "") or DEFAULT
    if path == "off" or not _is_ours(path):
        return None
    files = [os.memfd_create(name) for name in ("output", "errors")]
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        answer = ask(path, [directory, *files], dict(os.environb), _patience())
        return None if answer is None else _end(answer, *files)
    finally:
        for number in (directory, *files):
            os.close(number)


def _patience() -> float:
    """Seconds after which a service that says nothing has not only much to do: it keeps the time itself."""
    text = os.environ.get("BECALM_DEADLINE", "")
    return _PATIENCE + (int(text) if text.isascii() and text.isdigit() and len(text) < 7 else _DEADLINE)


def end(code: int) -> None:
    """End the process at once: everything is written, and Python would take as long to tidy up as the service to answer."""
    os._exit(code)


def _is_ours(path: str) -> bool:
    """Whether the socket is there, in a directory that nobody else can write to."""
    try:
        found = os.lstat(os.path.dirname(path) or ".")  # pathlib takes long to load
        return os.path.lexists(path) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    except OSError:
        return False


def message(environment: dict[bytes, bytes]) -> bytes:
    """A request as it goes over the socket."""
    body = entries(environment)
    return len(body).to_bytes(4, "big") + body


def entries(environment: dict[bytes, bytes]) -> bytes:
    """An environment as it goes from process to process."""
    return b"\0".join(name + b"=" + value for name, value in environment.items())


def ask(path: str, files: list[int], environment: dict[bytes, bytes], seconds: float | None) -> str | None:
    """Send a render, and wait for how it ends.

    Args:
        path: of the socket.
        files: open files of the directory, for output and for errors.
        environment: of `generate`.
        seconds: to wait for the answer; None is for ever.

    Returns:
        `exit CODE`, `busy TEXT` or `late TEXT`; None where no service answers.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_SECONDS_TO_CONNECT)
        connection.connect(path)
        peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS)
        if int.from_bytes(peer[4:8], sys.byteorder) != os.geteuid():
            return None
        data = message(environment)
        rights = [
            (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, b"".join(n.to_bytes(4, sys.byteorder) for n in files))
        ]
        try:
            sent = connection.sendmsg([data], rights)
            if sent < len(data):  # sending nothing is an error where the answer has come already
                connection.sendall(data[sent:])
        except (BrokenPipeError, ConnectionResetError):
            pass  # who has no place for us says so without listening
        # Where the service is killed, the connection ends.
        connection.settimeout(seconds)
        answer = b""
        while not answer.endswith(b"\n"):
            chunk = connection.recv(4096)
            if not chunk:
                return None
            answer += chunk
        return answer.decode("utf-8", "replace").strip()
    except OSError:
        return None
    finally:
        connection.close()


def _end(answer: str, output: int, errors: int) -> int | None:
    """Print what was rendered, and the exit code of the answer: `exit CODE`, `busy TEXT` or `late TEXT`."""
    word, _, rest = answer.partition(" ")
    if word in ("busy", "late"):
        os.write(2, f"Error: {rest}\n".encode())
        return _BUSY if word == "busy" else _LATE
    if word != "exit" or not rest.isdigit():
        return None
    _copy(errors, 2)
    code = int(rest)
    if code != 0:
        return code
    try:
        _copy(output, 1)
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _BROKEN_PIPE
        os.write(2, f"Error: the output could not be written: {error.strerror}\n".encode())
        return 1
    return 0


def _copy(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    while chunk := os.read(source, _CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
