"""Where a long name may go on in the next line: after its separators, not in the middle of a word."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

#: After a dot, a slash or a colon between two words, and before a bracket.
_BREAKS: Final = re.compile(r"(?<=\w[./:])(?=\w)|(?<=\w)(?=\[)")


def breakable(text: str) -> Markup:
    """A text for HTML with a `<wbr>` at each such place."""
    return Markup("<wbr>").join(escape(part) for part in _BREAKS.split(text))
