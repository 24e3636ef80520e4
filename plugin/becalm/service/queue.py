"""Which render is next: fair between applications."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items by application; each application in its turn gives its oldest."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, deque[Item]] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def put(self, app: str, item: Item) -> None:
        """Add an item."""
        self._items.setdefault(app, deque()).append(item)
        self._number += 1

    def get(self) -> Item:
        """The next item; its application goes to the end of the line.

        Raises:
            IndexError: there is none.
        """
        if not self._items:
            raise IndexError("the queue is empty")
        app, items = self._items.popitem(last=False)
        item = items.popleft()
        self._number -= 1
        if items:
            self._items[app] = items
        return item

    def remove(self, app: str, item: Item) -> None:
        """Take an item out, if it is still there."""
        items = self._items.get(app)
        if items is None or item not in items:
            return
        items.remove(item)
        self._number -= 1
        if not items:
            del self._items[app]
