"""Renders that need not be done again: what has been rendered from the very same inputs is kept, encrypted.

Rendering is a pure function of its inputs (becalm.answers.key), but for the windows of certificates and for inputs
that may change on a server. So an entry is right until the first window in it ends, and where an input is not pinned
for no longer than the operator allows. Entries hold Secrets: they are encrypted under a key that is derived from the
seed, and without a seed nothing is kept.
"""

from becalm.answers.answering import Answer, Missed, answer, look
from becalm.answers.key import Key

__all__ = ["Answer", "Key", "Missed", "answer", "look"]
