"""Live values that are derived anyway, so that they need no pin and go on as they did: certificates are renewed."""

from __future__ import annotations

from becalm.adopt.rounds import drawn, pieces
from becalm.derive.labels import Label
from becalm.derive.pins import Pin, text_label
from becalm.study import Study


class Unpinned:
    """What an application derives where it has no pins."""

    def __init__(self, first: Study) -> None:
        self._draws = drawn(first)
        calls = {call.key: call.text for call in first.settled.calls}
        self._texts = {
            text_label(owner): calls[path] for path, owner in pieces(self._draws).items() if path in calls
        }

    def gives(self, label: Label, pin: Pin, found: Study, *, is_exact: bool) -> bool:
        """Whether a draw or a text is derived as it is pinned, and from what it would be made from with all pins.

        Args:
            label: of the draw or the text.
            pin: its live value.
            found: a render with pins.
            is_exact: whether the live value was seen in its own case.
        """
        before, after = self._draws.get(label), drawn(found).get(label)
        if before is None:
            return label in self._texts and _are_alike(pin.texts, (self._texts[label],), is_exact=is_exact)
        if after is None or after.given != before.given:
            return False
        value = before.value
        texts = tuple(map(str, value.values())) if isinstance(value, dict) else (str(value),)
        return _are_alike(pin.texts, texts, is_exact=is_exact)


def _are_alike(live: tuple[str, ...], derived: tuple[str, ...], *, is_exact: bool) -> bool:
    """Whether texts are the same; the key of a certificate, "", need not be known."""
    pairs = zip(live, derived, strict=True)
    return all(a in {"", b} or (not is_exact and a.lower() == b.lower()) for a, b in pairs)
