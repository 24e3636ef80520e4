"""References of Kustomize that lead to other servers, read as Kustomize reads them, and whether they stay the same.

The rules are those of sigs.k8s.io/kustomize, api/internal/git/repospec.go (`NewRepoSpecFromURL`) and
api/internal/loader/fileloader.go (`IsRemoteFile`).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

_SCHEMES = ("ssh://", "https://", "http://", "file://")
_USER = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)@")
_SECRET = re.compile(r"(?<=://)[^/@\s]*@")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: Three numbers, since branches are called release-1.30; behind another word a v, since branches are called feature-1.2.3.
_VERSION = re.compile(r"(?:(?P<word>[\w.-]+)[/-](?=v))?v?\d+\.\d+\.\d+(?:[-+.][\w.+-]*)?")
#: Words that begin the names of branches.
_BRANCHES = re.compile(
    r"(refs-)?heads|release|releases|branch|branches|hotfix|feature|features|bugfix|fix|support",
    re.IGNORECASE,
)
#: Directories of an address that are branches.
_MOVING = ("main", "master", "HEAD", "heads", "trunk", "develop", "dev")
_FILE = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoSpec:
    """A Git repository that Kustomize clones: what `git fetch` is given, the path in it, and the ref ("": HEAD)."""

    clone: str
    path: str
    ref: str


def parse(text: str) -> RepoSpec | None:
    """A reference as a repository; None where Kustomize takes it for a local path."""
    if text.startswith("/"):
        return None
    rest, _, query = text.partition("?")
    host = _host(rest)
    if host is None:
        return None
    name, rest = host
    parts = _split(rest, takes_all=name.startswith("file://"))
    if parts is None or not parts[0]:
        return None
    if posixpath.normpath(parts[1].removeprefix("/")).split("/")[0] == "..":
        return None
    return RepoSpec(clone=name + parts[0], path=parts[1].removeprefix("/"), ref=_ref(query))


def is_remote_file(text: str) -> bool:
    """Whether Kustomize fetches it as a single file, before it tries it as a repository."""
    return _FILE.match(text) is not None


def is_pinned(text: str) -> bool:
    """Whether a remote reference names a full commit or a tag like v1.2.3, so that it stays what it is."""
    spec = parse(text)
    if spec is not None and spec.ref:
        return _is_fixed(spec.ref)
    # A single file: its address may hold the commit, or the version of a release.
    parts = urlsplit(text).path.split("/")[:-1] if is_remote_file(text) else []
    return any(map(_is_fixed, parts)) and not any(part in _MOVING for part in parts)


def shown(text: str) -> str:
    """A reference for messages, without a user's name and password."""
    return without_passwords(text)[:200]


def without_passwords(text: str) -> str:
    """A text without the users' names and passwords of its addresses."""
    return _SECRET.sub("", text)


def _is_fixed(ref: str) -> bool:
    if ref.startswith("refs/tags/"):
        return True
    if _COMMIT.fullmatch(ref):
        return True
    match = _VERSION.fullmatch(ref)
    return match is not None and not _BRANCHES.fullmatch(match["word"] or "")


def _host(text: str) -> tuple[str, str] | None:
    """The part that names the server, and the rest."""
    if text[:5].lower() == "git::":
        text = text[5:]
    scheme = next((one for one in _SCHEMES if text[: len(one)].lower() == one), "")
    text = text[len(scheme) :]
    match = _USER.match(text)
    user = match[0] if match else ""
    text = text[len(user) :]
    is_github = text.lower().startswith(("github.com/", "github.com:"))
    takes_colon = not scheme and bool(user or is_github)
    if not scheme and not takes_colon:
        return None
    if scheme == "file://":
        return scheme, user + text
    end = text.find("/")
    colon = text.find(":")
    if takes_colon and (end < 0 or 0 < colon < end):
        end = colon
    host, rest = (text[: end + 1], text[end + 1 :]) if end >= 0 else (text, "")
    if is_github:
        is_ssh = scheme == "ssh://" or bool(user)
        scheme, user, host = ("", user, "github.com:") if is_ssh else ("https://", "", "github.com/")
    return (scheme + user + host, rest) if host else None


def _split(text: str, *, takes_all: bool) -> tuple[str, str] | None:
    """The repository's path, and the path in the repository."""
    before, found, after = text.partition("_git/")
    if found:
        name, _, path = after.partition("/")
        return before + found + name, path
    for mark, kept in (("//", ""), (".git", ".git")):
        before, found, after = text.partition(mark)
        if found:
            return before + kept, after
    if takes_all:
        return text, ""
    parts = text.split("/")
    return ("/".join(parts[:2]), "/".join(parts[2:])) if len(parts) >= 2 else None


def _ref(query: str) -> str:
    if ";" in query or _BAD_ESCAPE.search(query):
        return ""  # Go's url.ParseQuery refuses it, and Kustomize goes on with nothing
    values = parse_qs(query, keep_blank_values=True, errors="replace")
    return values.get("ref", [""])[0] or values.get("version", [""])[0]
