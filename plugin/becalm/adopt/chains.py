"""Certificates are taken over together with what they need, or not at all: half a chain would verify nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from becalm.adopt import shapes
from becalm.derive.labels import Label
from becalm.derive.pins import Pin
from becalm.stabilise.stabiliser import Settled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """A certificate, and the draws that are its authority and its key, where those are drawn."""

    label: Label
    authority: Label | None
    key: Label | None


def incomplete(
    draws: Mapping[Label, Settled],
    pins: Mapping[Label, Pin],
    *,
    stays: Callable[[Label], bool],
) -> dict[Label, str]:
    """The certificates that may not be pinned, with the reason.

    Args:
        draws: of one render with the pins.
        pins: that are wanted.
        stays: whether a draw without a pin need not have one: nobody sees it, or it is derived as it is live.
    """
    found = list(_needs(draws))
    refused: dict[Label, str] = {}

    def holds(label: Label) -> bool:
        return label not in refused and (label in pins or stays(label))

    while fresh := dict(_refusals(found, pins, refused, holds)):
        refused |= fresh
    return refused


def _refusals(
    found: list[_Needs],
    pins: Mapping[Label, Pin],
    refused: Mapping[Label, str],
    holds: Callable[[Label], bool],
) -> Iterator[tuple[Label, str]]:
    for one in found:
        is_pinned = one.label in pins and one.label not in refused
        authority = one.authority
        if is_pinned and authority is not None and not holds(authority):
            yield one.label, f"the authority that signed it is not taken over: {authority.place}"
        elif is_pinned and one.key is not None and not holds(one.key):
            yield one.label, f"its key is not taken over: {one.key.place}"
        if is_pinned or authority is None or authority in refused:
            continue
        if authority in pins and pins[authority].texts[1:] == ("",):
            yield (
                authority,
                f"its key is not among the live values, and it would have to sign {one.label.place}",
            )


def _needs(draws: Mapping[Label, Settled]) -> Iterator[_Needs]:
    authorities: dict[str, Label] = {}
    keys: dict[str, Label] = {}
    for label, settled in draws.items():
        if isinstance(settled.value, dict):
            authorities[str(settled.value["Cert"]).strip()] = label
        elif settled.draw.function == "genPrivateKey":
            keys[str(settled.value).strip()] = label
    for label, settled in draws.items():
        function, given = settled.draw.function, [text.strip() for text in settled.given]
        if shapes.is_certificate(function) and given:
            yield _Needs(
                label=label,
                authority=authorities.get(given[0]) if function.startswith("genSignedCert") else None,
                key=keys.get(given[-1]) if function.endswith("WithKey") else None,
            )
