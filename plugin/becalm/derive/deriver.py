"""The answers to draws: from the function, its arguments and an identity to the value."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from becalm.derive import values
from becalm.derive.cache import Cache
from becalm.derive.labels import Label, encode, item_key
from becalm.derive.pins import Pin, Pins
from becalm.derive.windows import DAY, Window, Windows
from becalm.errors import DerivationError

if TYPE_CHECKING:
    from becalm.derive.certificates import Certificate

    #: A text; the order of a shuffle as positions; or a certificate with its key.
    Value = str | list[int] | Certificate

_CA_BITS = 2048  # of the keys that sprig makes for certificates
#: Functions whose values depend on texts that may not be part of an identity.
GIVEN = frozenset(
    {
        "bcrypt",
        "encryptAES",
        "genCAWithKey",
        "genSelfSignedCertWithKey",
        "genSignedCert",
        "genSignedCertWithKey",
        "htpasswd",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate that was derived, and its window."""

    certificate: Certificate
    window: Window


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What a function of sprig makes: an authority or not, with whose signature, with whose key."""

    is_ca: bool = False
    signed: bool = False
    with_key: bool = False


class Deriver:
    """Derives the values of one application at one time.

    Args:
        key: the app key, 32 bytes.
        at: the time of the render, seconds since 1970; only certificates' windows depend on it.
        windows: how certificates' validity is cut.
        cache: for what takes long.
        pins: values that were taken over, and are not derived.
    """

    def __init__(
        self, key: bytes, *, at: int, windows: Windows, cache: Cache, pins: Pins | None = None
    ) -> None:
        self._key = key
        self._at = at
        self._windows = windows
        self._cache = cache
        self.pins = Pins() if pins is None else pins
        self.issued: dict[str, Issued] = {}

    def mac(self, data: bytes) -> str:
        """A keyed digest, in hexadecimal, that shows nothing of its input."""
        return hmac.digest(self._key, data, "sha256").hex()

    def value(self, label: Label, function: str, arguments: str, given: Sequence[str]) -> Value:
        """The value of a draw.

        Args:
            label: its identity.
            function: what is called.
            arguments: the JSON of what may be part of an identity: counts, limits, the kind of a key;
                the common name, addresses, DNS names and days of a certificate.
            given: the texts that may not: passwords, plain texts, issuers, keys.

        Raises:
            DerivationError: Helm's own function would refuse the arguments.
        """
        item = item_key(self._key, label)
        parts = json.loads(arguments)
        pin = self.pins.of(label, self.pins.given(function, given if function in GIVEN else ()))
        if pin is not None:
            return self._pinned(pin, item, function, given)
        special = _SPECIAL.get(function)
        if special is not None:
            return special(self, item, parts, list(given))
        return values.value(function, parts, item)

    def _pinned(self, pin: Pin, item: bytes, function: str, given: Sequence[str]) -> Value:
        if len(pin.texts) == 1:
            return pin.texts[0]
        from becalm.derive.certificates import Certificate  # noqa: PLC0415

        cert, key = pin.texts
        # A key that is seen nowhere was not found, and need not be the certificate's.
        return Certificate(
            cert=cert, key=key or self._certificate_key(item, given, is_given=function.endswith("WithKey"))
        )

    def _certificate_key(self, item: bytes, given: Sequence[str], *, is_given: bool) -> str:
        from becalm.derive import keys  # noqa: PLC0415

        return given[-1] if is_given else self._slow(item, (), lambda: keys.rsa_key(item, _CA_BITS))

    def _slow(self, item: bytes, texts: Sequence[str], derive: Callable[[], str]) -> str:
        return self._cache.value(hmac.digest(item, encode(("becalm cache", *texts)), "sha256"), derive)

    def _private_key(self, item: bytes, parts: list[str], _: list[str]) -> str:
        from becalm.derive import keys  # noqa: PLC0415  # only where a chart makes keys

        (kind,) = parts
        make = keys.KINDS.get(kind)
        return f"Unknown type {kind}" if make is None else self._slow(item, (), lambda: make(item))

    def _htpasswd(self, item: bytes, parts: list[str], given: list[str]) -> str:
        from becalm.derive import hashes  # noqa: PLC0415

        user, algorithm = [*parts, ""][:2]
        (password,) = given
        # A user that is drawn is in no label.
        return self._slow(
            item, (user, algorithm, password), lambda: hashes.htpasswd(item, user, password, algorithm)
        )

    def _bcrypt(self, item: bytes, _: list[str], given: list[str]) -> str:
        from becalm.derive import hashes  # noqa: PLC0415

        (password,) = given
        return self._slow(item, given, lambda: hashes.bcrypt(item, password))

    def _encrypt(self, item: bytes, _: list[str], given: list[str]) -> str:
        from becalm.derive import hashes  # noqa: PLC0415

        password, text = given
        return hashes.encrypt_aes(item, password, text)

    def _certificate(self, item: bytes, parts: list[Any], given: list[str], shape: _Shape) -> Certificate:
        from becalm.derive.certificates import Certificate, Request, issue  # noqa: PLC0415

        name, *names, days = parts
        ips, dns = names or ((), ())
        if days < 1:
            raise DerivationError(f"a validity of {days} days ends before it begins")
        issuer = Certificate(cert=given[0], key=given[1]) if shape.signed else None
        if issuer is not None and self.pins.is_without_key(issuer.cert):
            if not self.pins.is_loose:
                raise DerivationError(
                    "the authority was taken over without its key, so it signs nothing new; adopt again, raise its epoch as well, or remove its pin"
                )
            issuer = None  # it stands in until the authority's pin is given up
        private = self._certificate_key(item, given, is_given=shape.with_key)
        shift = int.from_bytes(hmac.digest(item, b"becalm window", "sha256")[:16], "big")
        window = self._windows.window(days * DAY, at=self._at, shift=shift)
        request = Request(name=name, ips=ips, dns=dns, is_ca=shape.is_ca)
        done = issue(request, private=private, window=window, item=item, issuer=issuer)
        self.issued[done.cert] = Issued(certificate=done, window=window)
        return done


def _shaped(shape: _Shape) -> Callable[[Deriver, bytes, list[Any], list[str]], Value]:
    return lambda deriver, item, parts, given: deriver._certificate(item, parts, given, shape)  # noqa: SLF001


_SPECIAL: dict[str, Callable[[Deriver, bytes, list[Any], list[str]], Value]] = {
    "genPrivateKey": Deriver._private_key,  # noqa: SLF001
    "htpasswd": Deriver._htpasswd,  # noqa: SLF001
    "bcrypt": Deriver._bcrypt,  # noqa: SLF001
    "encryptAES": Deriver._encrypt,  # noqa: SLF001
    "genCA": _shaped(_Shape(is_ca=True)),
    "genCAWithKey": _shaped(_Shape(is_ca=True, with_key=True)),
    "genSelfSignedCert": _shaped(_Shape()),
    "genSelfSignedCertWithKey": _shaped(_Shape(with_key=True)),
    "genSignedCert": _shaped(_Shape(signed=True)),
    "genSignedCertWithKey": _shaped(_Shape(signed=True, with_key=True)),
}
