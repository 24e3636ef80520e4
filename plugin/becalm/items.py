"""What becalm derives for a chart: items with their labels, and keyed fingerprints of their values."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from becalm.derive.labels import app_key
from becalm.errors import ConfigError
from becalm.manifests.landing import Landing
from becalm.manifests.paths import render as render_path
from becalm.pipeline import render
from becalm.request import Request
from becalm.stabilise import epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One derived value, or the pieces of one identity, such as the digits of a key, with a line for each.

    `number` is how many pieces there are. Each piece with a fingerprint of its own would show which are equal, and from
    that most of a key. `item` is the place that owns it, as `--item-epoch` names it, "" where it lands nowhere;
    `fingerprint` tells whether two renders of one application have the same value, and nothing else.
    """

    item: str
    function: str
    label: str
    fingerprint: str
    number: int
    value: str = field(repr=False)


def derived(request: Request, name: str) -> list[Derived]:
    """The derived values of a chart.

    Args:
        request: what to render.
        name: KIND/NAME or KIND/NAME/KEY, to see only those; "" for all.

    Raises:
        ConfigError: `name` cannot be read or names nothing, or the source is a Kustomization.
        PluginError: as `pipeline.render`.
    """
    wanted = epochs.parse(name, where="--object") if name else None
    if request.kind == "kustomize":
        raise ConfigError(
            "what is derived for the charts of a Kustomization cannot be listed",
            where=request.path_name,
            hint="name one of its charts",
        )
    stabilised = render(request).stabilised
    found = [
        settled
        for settled in (stabilised.draws.values() if stabilised else ())
        if wanted is None or any(map(wanted.names, settled.places))
    ]
    if wanted is not None and not found:
        raise ConfigError(
            f"{name} holds nothing that is derived",
            where=str(request.chart),
            hint="`becalm derive PATH ...` without --object lists all",
        )
    assert request.seed is not None or not found
    key = b"" if request.seed is None else app_key(request.seed.secret, request.seed.id, request.application)
    groups: dict[tuple[str, str, str], dict[str, str]] = {}
    for settled in found:
        item = _item(settled.places[0]) if settled.places else ""
        group = groups.setdefault((item, settled.draw.function, str(settled.label.first)), {})
        # Draws that join others are values that are listed already.
        group[str(settled.label)] = text_of(settled.value)
    return [_derived(*named, list(values.values()), key) for named, values in groups.items()]


def _derived(item: str, function: str, label: str, values: list[str], key: bytes) -> Derived:
    value = "\n".join(values)
    return Derived(
        item=item,
        function=function,
        label=label,
        number=len(values),
        fingerprint=hmac.digest(key, b"becalm fingerprint" + value.encode(), "sha256").hex()[:16],
        value=value,
    )


def _item(place: Landing) -> str:
    owner = place.object
    kind = f"{owner.kind}.{owner.group}" if owner.group else owner.kind
    return f"{kind}/{owner.name}/{render_path(place.path)}"


def text_of(value: object) -> str:
    """A value as text: a certificate is followed by its key, an order is a list of positions."""
    if isinstance(value, dict):
        return "".join(str(text) for text in value.values())
    return str(value)
