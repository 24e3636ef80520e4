"""Rules as data: which objects and fields they mean, what they do, and why.

A rule file is YAML; `rules.schema.json` is its form and docs/rules.md its explanation. Built-in packs and
users' files have the same form.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from becalm.config.schema import first_error, packaged
from becalm.errors import ManifestError, RuleError
from becalm.manifests import yamlio
from becalm.manifests.objects import ObjectId
from becalm.manifests.scalars import Value
from becalm.normalise import selectors
from becalm.normalise.places import at
from becalm.normalise.selectors import AnyKey, Key, Selector

Verb = Literal["strip", "fill", "canonicalise"]
Form = Literal["quantity", "duration"]
Kind = Literal["empty", "null", "false", "zero", "nonzero"]


def is_like(text: str, pattern: str) -> bool:
    """Whether a text fits a glob."""
    return pattern in (text, "*") or fnmatch.fnmatchcase(text, pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Globs that an object's group, kind, name and namespace must all match."""

    group: str
    kind: str
    name: str = "*"
    namespace: str = "*"
    versions: tuple[str, ...] = ()

    def fits(self, owner: ObjectId, api_version: str = "") -> bool:
        """Whether it matches an object, in its version where one is given."""
        version = api_version.rpartition("/")[2]
        if self.versions and version and version not in self.versions:
            return False
        pairs = (
            (owner.group, self.group),
            (owner.kind, self.kind),
            (owner.name, self.name),
            (owner.namespace, self.namespace),
        )
        return all(is_like(text, pattern) for text, pattern in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What must be there (all of it), what must hold something (any of it), what must not be there, and values."""

    present: tuple[Selector, ...] = ()
    any: tuple[Selector, ...] = ()
    absent: tuple[Selector, ...] = ()
    equals: tuple[tuple[Selector, Value], ...] = ()

    def hold(self, value: Value) -> bool:
        """Whether all of it holds for a value."""
        return (
            all(selector.find(value) for selector in self.present)
            and (
                not self.any
                or any(
                    not is_kind(at(value, path), "empty")
                    for selector in self.any
                    for path in selector.find(value)
                )
            )
            and not any(selector.find(value) for selector in self.absent)
            and all(
                any(_same(at(value, path), wanted) for path in selector.find(value))
                for selector, wanted in self.equals
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An object of another kind in the same render whose `path` names the object by kind and name.

    `equals` is what else stands beside the name.
    """

    group: str
    kind: str
    path: Selector
    equals: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """When a rule acts.

    `value` is of what the field holds, `holder` of its neighbours, `object` of the whole object, `referred` of
    others that refer to it, `unreferred` of others that must not; `below` is the minor release of Kubernetes
    that the server must be older than, which it is not where its version is unknown.
    """

    value: Kind | None = None
    holder: Fields = field(default_factory=Fields)
    object: Fields = field(default_factory=Fields)
    referred: tuple[Reference, ...] = ()
    unreferred: tuple[Reference, ...] = ()
    below: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What a rule does to some objects: `after` is None where it must leave `before` alone.

    `others` are further objects of the same render; `live` is what the cluster then holds, as a merge patch
    (RFC 7386) of `before`; `kube_version` is its version.
    """

    title: str
    before: Mapping[str, Any]
    after: Mapping[str, Any] | None
    others: tuple[Mapping[str, Any], ...] = ()
    live: Mapping[str, Any] | None = None
    kube_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `targets` are the fields, with the value to fill in or the form to give.

    `computed` names a set of fields in the place of targets (`normalise.computed`), else it is "". `enabled`
    tells whether the rule acts without being asked for, `by_name` that a switch has to name it, since that of
    its pack does not mean it. `first_sync` says what the change does to an object that was applied before,
    where that is more than to take the field away.
    """

    id: str
    pack: str
    reason: str
    verb: Verb
    match: tuple[Match, ...]
    targets: tuple[tuple[Selector, Any], ...]
    when: Condition
    examples: tuple[Example, ...]
    evidence: tuple[str, ...] = ()
    computed: str = ""
    enabled: bool = True
    by_name: bool = False
    first_sync: str = ""

    def fits(self, owner: ObjectId, api_version: str = "") -> bool:
        """Whether it may mean this object, in its version where one is given."""
        return any(match.fits(owner, api_version) for match in self.match)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A file of rules. `enabled` is what its rules are where they do not say it themselves."""

    id: str
    title: str
    enabled: bool
    rules: tuple[Rule, ...]


def is_kind(value: Value, kind: Kind) -> bool:
    """Whether a value is empty, null, false, zero or not zero; booleans and numbers are different things."""
    match kind:
        case "empty":
            return value is None or value in ("", [], {})
        case "null":
            return value is None
        case "false":
            return value is False
        case "zero":
            return value == 0 and not isinstance(value, bool)
        case "nonzero":
            return value is None or (
                isinstance(value, int | float) and not isinstance(value, bool) and value != 0
            )


def _same(value: Value, wanted: Value) -> bool:
    return type(value) is type(wanted) and value == wanted


def load(text: str, *, where: str, checked: bool = True) -> Pack:
    """Read a rule file.

    Args:
        text: YAML.
        where: the file, for messages.
        checked: against the schema; built-in files are checked by the tests.

    Raises:
        RuleError: it is not YAML, not of the right form, or names a field that is no selector.
    """
    value: Any = parse(text, where=where)
    if checked:
        check(value, schema(), text, where)
    pack = str(value["pack"])
    enabled = bool(value.get("enabled", True))
    found = tuple(rule(entry, pack, where=where, enabled=enabled) for entry in value["rules"])
    return Pack(id=pack, title=str(value.get("title", "")), enabled=enabled, rules=unique(found, where))


def unique(found: tuple[Rule, ...], where: str) -> tuple[Rule, ...]:
    """Rules of one pack.

    Raises:
        RuleError: two have one id.
    """
    ids = [one.id for one in found]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise RuleError(f"there are two rules {twice!r}", where=where, hint="give one of them another id")
    return found


def parse(text: str, *, where: str) -> Value:
    """The value of a file of rules.

    Raises:
        RuleError: it is not YAML.
    """
    try:
        return yamlio.load(text, where=where, strict=True)
    except ManifestError as error:
        raise RuleError(error.what, where=error.where, hint="see docs/rules.md") from error


_UNQUOTED = {
    "type": "the value is not of type", "pattern": "the value does not match", "enum": "the value is none of",
    "minLength": "the text is shorter than", "maxLength": "the text is longer than",
}  # fmt: skip


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of rule files."""
    return packaged("becalm.normalise", "rules.schema.json")


def check(value: Value, form: Mapping[str, Any], text: str, where: str) -> None:
    """Check a file's value against a JSON Schema.

    Raises:
        RuleError: it does not fit; the message names the line.
    """
    first = first_error(value, form)
    if first is None:
        return
    import jsonschema  # noqa: PLC0415  # as in `first_error`

    deepest = jsonschema.exceptions.best_match([first])
    path = tuple(deepest.absolute_path)
    positions = yamlio.lines(text)
    while path and path not in positions:
        path = path[:-1]
    field_name = "/".join(map(str, deepest.absolute_path)) or "the file"
    # The value itself may be long, or a secret of a file that was given by mistake.
    message = deepest.message[:200]
    if deepest.validator in _UNQUOTED:
        message = f"{_UNQUOTED[deepest.validator]} {deepest.validator_value}"[:200]
    if deepest.validator == "oneOf":
        choices = (" and ".join(choice["required"]) for choice in deepest.validator_value)
        message = f"needs exactly one of {', '.join(choices)}"
    raise RuleError(
        f"{field_name}: {message}",
        where=f"{where}:{positions.get(path, 1)}",
        hint="see docs/rules.md",
    )


def rule(entry: Mapping[str, Any], pack: str, *, where: str, enabled: bool) -> Rule:
    """A rule of a file that has the right form.

    Raises:
        RuleError: it names a field that is no selector, or a field to fill that is no key.
    """
    rule_id = f"{pack}/{entry['id']}"
    place = f"{where}: {rule_id}"
    verb: Verb = next(verb for verb in ("strip", "fill", "canonicalise") if verb in entry)
    targets = entry[verb]
    computed = targets if isinstance(targets, str) else ""
    pairs = {} if computed else dict.fromkeys(targets) if isinstance(targets, list) else targets
    parsed = tuple((selectors.parse(text, where=place), wanted) for text, wanted in pairs.items())
    is_of_empty = entry.get("when", {}).get("value") in ("empty", "null")
    for selector, _ in parsed:
        # An object without a name needs the beginning of one, but for an empty one.
        if _is_identity(selector) or (selector.keys == _BEGINNING and not is_of_empty):
            raise RuleError(
                f"a rule cannot change {str(selector)!r}, by which an object is known", where=place
            )
    if verb == "fill" and not all(selector.last for selector, _ in parsed):
        raise RuleError("a field to fill ends with a key", where=place)
    return Rule(
        id=rule_id,
        pack=pack,
        reason=str(entry["reason"]),
        evidence=tuple(map(str, entry.get("evidence", ()))),
        verb=verb,
        match=tuple(
            Match(**{**match, "versions": tuple(match.get("versions", ()))}) for match in entry["match"]
        ),
        targets=parsed,
        computed=computed,
        enabled=bool(entry.get("enabled", enabled)),
        by_name=entry.get("enabled") is False,
        first_sync=str(entry.get("first_sync", "")),
        when=condition(entry.get("when", {}), place),
        examples=tuple(_example(example) for example in entry.get("examples", ())),
    )


_IDENTITY = (Key("name"), Key("namespace"), AnyKey())
_BEGINNING = ("metadata", "generateName")


def _is_identity(selector: Selector) -> bool:
    """Whether a field is what an object is known by, or holds that."""
    first, *rest = selector.steps
    if first in (Key("kind"), Key("apiVersion"), Key("items")):
        return True
    return first == Key("metadata") and (not rest or rest[0] in _IDENTITY)


def condition(entry: Mapping[str, Any], where: str) -> Condition:
    """A condition as a rule file has it.

    Raises:
        RuleError: it names a field that is no selector.
    """
    return Condition(
        value=entry.get("value"),
        holder=_fields(entry.get("holder", {}), where),
        object=_fields(entry.get("object", {}), where),
        referred=_references(entry.get("referred", ()), where),
        unreferred=_references(entry.get("unreferred", ()), where),
        below=int(entry["below"].partition(".")[2]) if "below" in entry else None,
    )


def _references(entries: Sequence[Mapping[str, Any]], where: str) -> tuple[Reference, ...]:
    return tuple(
        Reference(
            group=one["group"],
            kind=one["kind"],
            path=selectors.parse(one["path"], where=where),
            equals=tuple(one.get("equals", {}).items()),
        )
        for one in entries
    )


def _fields(entry: Mapping[str, Any], where: str) -> Fields:
    return Fields(
        present=tuple(selectors.parse(text, where=where) for text in entry.get("present", ())),
        any=tuple(selectors.parse(text, where=where) for text in entry.get("any", ())),
        absent=tuple(selectors.parse(text, where=where) for text in entry.get("absent", ())),
        equals=tuple(
            (selectors.parse(text, where=where), wanted) for text, wanted in entry.get("equals", {}).items()
        ),
    )


def _example(entry: Mapping[str, Any]) -> Example:
    before = entry.get("before", entry.get("keeps"))
    assert isinstance(before, dict)
    return Example(
        title=str(entry["title"]),
        before=before,
        after=entry.get("after"),
        others=tuple(entry.get("others", ())),
        live=entry.get("live"),
        kube_version=str(entry.get("kube_version", "")),
    )
