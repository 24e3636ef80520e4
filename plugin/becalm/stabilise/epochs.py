"""Epochs of items: a number, or any word, that an app team raises to get a new value in one place.

An item is named by kind, name and key: `Secret/db/password` is the key `password` of the Secret `db`,
wherever it stands in the object; `Secret/db/data.password` is one field; `Secret/db` is every value in the
object. A kind of an API group may be written with it: `Certificate.cert-manager.io/web/...`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from becalm.errors import ConfigError
from becalm.manifests.landing import Landing
from becalm.manifests.paths import render


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A place in an object; an empty `key` is the whole object, an empty `group` any group."""

    kind: str
    group: str
    name: str
    key: str

    def names(self, place: Landing) -> bool:
        """Whether it names this place."""
        owner = place.object
        if (owner.kind, owner.name) != (self.kind, self.name) or self.group not in ("", owner.group):
            return False
        last = place.path[-1] if place.path else ""
        return self.key in ("", last, render(place.path))


def parse(text: str, *, where: str) -> Item:
    """The item that a text names.

    Raises:
        ConfigError: it is not KIND/NAME or KIND/NAME/KEY.
    """
    kind, _, rest = text.partition("/")
    name, slash, key = rest.partition("/")
    kind, _, group = kind.partition(".")
    if not kind or not name or (slash and not key):
        raise ConfigError(
            f"{text!r} names no item", where=where, hint="write KIND/NAME/KEY, for example Secret/db/password"
        )
    return Item(kind=kind, group=group, name=name, key=key)


class Epochs:
    """The epochs of one application's items.

    Args:
        texts: epochs by item, as they were given.
        where: the parameter or option that gave them.
        all_used: whether each must name something that is derived; not where a chart is one of several.

    Raises:
        ConfigError: an item cannot be read.
    """

    def __init__(
        self, texts: Mapping[str, str] | None = None, *, where: str = "", all_used: bool = True
    ) -> None:
        self.where = where
        self.all_used = all_used
        self._items = [
            (text, parse(text, where=where), epoch) for text, epoch in sorted((texts or {}).items()) if epoch
        ]
        self._used: set[str] = set()

    def of(self, places: Iterable[Landing]) -> tuple[str, ...]:
        """The epochs of what is in these places, as parts of its label."""
        places = list(places)
        named = [(text, epoch) for text, item, epoch in self._items if any(map(item.names, places))]
        self._used |= {text for text, _ in named}
        return tuple(part for _, epoch in named for part in ("epoch", epoch))

    def require_used(self) -> None:
        """Refuse an epoch that changed nothing, since somebody believes that a secret is new.

        Raises:
            ConfigError: an item names nothing that is derived.
        """
        for text, _, _ in self._items:
            if self.all_used and text not in self._used:
                raise ConfigError(
                    f"the epoch of {text!r} names nothing that is derived",
                    where=self.where,
                    hint="`becalm derive` lists what is; remove it, or correct its kind, name or key",
                )
