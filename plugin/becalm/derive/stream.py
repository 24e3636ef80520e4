"""A stream of bytes and unbiased numbers from an item key.

Block i of the stream is HMAC-SHA256(item key, i as 8 big-endian bytes).
"""

from __future__ import annotations

import hashlib
import hmac


class Stream:
    """Reads an item key's stream from its start."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._counter = 0
        self._buffer = b""

    def read(self, count: int) -> bytes:
        """The next `count` bytes."""
        blocks = [self._buffer]
        have = len(self._buffer)
        while have < count:
            block = hmac.new(self._key, self._counter.to_bytes(8, "big"), hashlib.sha256).digest()
            blocks.append(block)
            have += len(block)
            self._counter += 1
        data = b"".join(blocks)
        self._buffer = data[count:]
        return data[:count]

    def below(self, limit: int) -> int:
        """A uniform integer in [0, limit), by rejection sampling over the fewest whole bytes.

        Bytes are read as one big-endian number; numbers at or above the largest multiple of
        `limit` are thrown away, so no residue is likelier than another.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1")
        if limit == 1:
            return 0
        size = ((limit - 1).bit_length() + 7) // 8
        space = 1 << (8 * size)
        usable = space - space % limit
        while True:
            number = int.from_bytes(self.read(size), "big")
            if number < usable:
                return number % limit
