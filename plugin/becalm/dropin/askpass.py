"""What Git asks for credentials below Kustomize: those of the application's own repository, for its own server only.

Argo CD's askpass answers whoever asks, whatever server it is about, and a base can name any server. Git says in
its question which one that is (git's credential.c, `credential_ask_one`), so the question is read here first.
"""

from __future__ import annotations

import os
import re
import sys

#: The server that may be asked about, as https://host:port, and Argo CD's program.
SERVER = "BECALM_ASKPASS_SERVER"
PROGRAM = "BECALM_ASKPASS_PROGRAM"
_QUESTION = re.compile(
    r"(?:Username|Password) for '(?P<scheme>https)://(?:[^/@']*@)?(?P<host>[^/@']+)(?:/[^']*)?': ?"
)


def main() -> int:
    """Become Argo CD's program, if the question is about the application's own server."""
    variables = dict(os.environ)
    server, program = variables.pop(SERVER, ""), variables.pop(PROGRAM, "")
    question = sys.argv[1] if len(sys.argv) == 2 else ""
    match = _QUESTION.fullmatch(question)
    if not (match and server and program and f"{match['scheme']}://{match['host']}" == server):
        sys.stderr.write("becalm gives Git no credentials for this server\n")
        return 1
    try:
        os.execvpe(program, [program, question], variables)
    except OSError as error:
        sys.stderr.write(f"becalm cannot run {program}: {error.strerror}\n")
    return 1
