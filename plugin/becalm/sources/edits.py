"""What Argo CD does to an application's own kustomization: `kustomize edit`, on its parsed content.

The rules are those of sigs.k8s.io/kustomize, kustomize/commands/edit/{set,add}, in the order and with the arguments
of Argo CD's util/kustomize (`Build`). What `edit` would take for one of its own options is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from becalm.errors import ConfigError

WHERE = "source.plugin.parameters"
_KEEP = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class KustomizeOptions:
    """What Argo CD's `source.kustomize` can say; empty where nothing is asked for.

    Variables are replaced already. `patches` are maps of `path`, `patch`, `target` and `options`; `kube_version`
    and `api_versions` are for the charts that Kustomize inflates.
    """

    name_prefix: str = ""
    name_suffix: str = ""
    images: tuple[str, ...] = ()
    replicas: Mapping[str, str] = field(default_factory=dict)
    common_labels: Mapping[str, str] = field(default_factory=dict)
    force_common_labels: bool = False
    label_without_selector: bool = False
    label_include_templates: bool = False
    common_annotations: Mapping[str, str] = field(default_factory=dict)
    force_common_annotations: bool = False
    namespace: str = ""
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    patches: tuple[Mapping[str, Any], ...] = ()
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()

    @property
    def edits(self) -> bool:
        """Whether the kustomization is changed."""
        return any((
            self.name_prefix, self.name_suffix, self.images, self.replicas, self.common_labels,
            self.common_annotations, self.namespace, self.components, self.patches,
        ))  # fmt: skip


def edited(
    content: Mapping[str, Any], options: KustomizeOptions, components: tuple[str, ...]
) -> dict[str, Any]:
    """A kustomization with the options applied; the original stays as it is.

    Args:
        content: with the fields' usual names.
        options: what is asked for.
        components: those of `options` that were found.

    Raises:
        ConfigError: an option is refused, as `kustomize edit` would.
    """
    result = dict(content)
    texts = {
        "namePrefix": options.name_prefix,
        "nameSuffix": options.name_suffix,
        "namespace": options.namespace,
    }
    result |= {name: value for name, value in texts.items() if value}
    if options.images:
        result["images"] = _images(_maps(result, "images") + _maps(result, "imageTags"), options.images)
        result.pop("imageTags", None)
    if options.replicas:
        result["replicas"] = _replicas(_maps(result, "replicas"), options.replicas)
    _add_labels(result, options)
    if options.common_annotations:
        result["commonAnnotations"] = _added(
            _map(result, "commonAnnotations"), _pairs(options.common_annotations, "commonAnnotations"),
            force=options.force_common_annotations, what="annotation",
        )  # fmt: skip
    if options.patches:
        result["patches"] = [*_list(result, "patches"), *map(dict, options.patches)]
    known = list(_list(result, "components"))
    for component in components:
        if component not in known:
            known.append(component)
    if known:
        result["components"] = known
    return result


def _add_labels(result: dict[str, Any], options: KustomizeOptions) -> None:
    if not options.common_labels:
        return
    if options.label_include_templates and not options.label_without_selector:
        raise ConfigError(
            "labels go to templates only where selectors are left alone",
            where=f"{WHERE}: labelIncludeTemplates",
            hint="set labelWithoutSelector to true as well",
        )
    pairs = _pairs(options.common_labels, "commonLabels")
    force = options.force_common_labels
    if not options.label_without_selector:
        result["commonLabels"] = _added(_map(result, "commonLabels"), pairs, force=force, what="label")
        return
    labels = [dict(entry) for entry in _maps(result, "labels")]
    fitting = [
        entry for entry in labels
        if not get(entry, "includeSelectors") and bool(get(entry, "includeTemplates")) == options.label_include_templates
    ]  # fmt: skip
    if not fitting:
        fitting = [{"includeTemplates": True} if options.label_include_templates else {}]
        labels += fitting
    first = fitting[0]
    spelling = next((key for key in first if key.lower() == "pairs"), "pairs")
    if not isinstance(first.get(spelling) or {}, dict):
        raise ConfigError(
            "the pairs are no map", where="the kustomization's labels", hint="see Kustomize's reference"
        )
    first[spelling] = _added(first.get(spelling) or {}, pairs, force=force, what="label")
    result["labels"] = labels


def _pairs(given: Mapping[str, str], parameter: str) -> dict[str, str]:
    """`KEY:VALUE` as `edit add` reads it: the key ends at the first colon, quotes around a value are dropped."""
    found = {}
    for name in sorted(given):
        key, _, value = f"{name}:{given[name]}".partition(":")
        if not key or key.startswith("-"):
            raise ConfigError(
                f"{name[:60]!r} is no key", where=f"{WHERE}: {parameter}", hint="write KEY: VALUE"
            )
        found[key] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    return found


def _added(present: Mapping[str, Any], pairs: Mapping[str, str], *, force: bool, what: str) -> dict[str, Any]:
    result = dict(present)
    for key, value in pairs.items():
        if key in result and not force:
            name = f"Common{what.capitalize()}s"
            raise ConfigError(
                f"the {what} {key[:200]!r} is in the kustomization already",
                where=f"{WHERE}: c{name[1:]}",
                hint=f"set force{name} to true to overwrite it",
            )
        result[key] = value
    return result


def _images(present: list[Mapping[str, Any]], given: tuple[str, ...]) -> list[Any]:
    wanted: dict[str, dict[str, str]] = {}
    for text in given:
        one = image(text)
        wanted[one["name"]] = one
    result: dict[str, Mapping[str, Any]] = {}
    for entry in present:
        name = str(get(entry, "name") or "")
        if name not in wanted:
            result.setdefault(name, entry)
            continue
        for key in ("newName", "newTag", "digest"):
            if wanted[name].get(key) == _KEEP:
                wanted[name][key] = str(get(entry, key) or "")
    for name, one in wanted.items():
        result[name] = {key: value for key, value in one.items() if value not in ("", _KEEP) or key == "name"}
    return [dict(result[name]) for name in sorted(result)]


def image(text: str) -> dict[str, str]:
    """`[NAME=]IMAGE[:TAG][@DIGEST]` as an entry of `images`.

    Raises:
        ConfigError: it is something else.
    """
    name, equals, value = text.partition("=")
    if not equals:
        name, value = "", text
    slash = max(value.find("/"), 0)
    at, colon = value.find("@", slash), value.find(":", slash)
    end = min((place for place in (at, colon) if place >= 0), default=len(value))
    digest = value[at + 1 :] if at >= 0 else ""
    tag = value[colon + 1 : at if at >= 0 else None] if colon >= 0 and end == colon else ""
    new = value[:end]
    if not text or text.startswith("-") or (not equals and new == text):
        raise ConfigError(
            f"{text[:200]!r} is no image",
            where=f"{WHERE}: images",
            hint="write NAME=NEW:TAG, NAME=NEW@DIGEST, NAME:TAG or the like",
        )
    found = {"name": name, "newName": new} if name else {"name": new}
    return {**found, "newTag": tag, "digest": digest}


def _replicas(present: list[Mapping[str, Any]], given: Mapping[str, str]) -> list[Any]:
    # Of entries of one name the first stays.
    result: dict[str, Any] = {str(get(entry, "name") or ""): dict(entry) for entry in reversed(present)}
    for name, count in given.items():
        digits = count.removeprefix("-").removeprefix("+")
        is_number = digits.isascii() and digits.isdigit() and len(digits) < 19
        if "=" in name or name.startswith("-") or not is_number:
            raise ConfigError(
                f"{name[:60]}={count[:20]} is no number of replicas",
                where=f"{WHERE}: replicas",
                hint="write NAME: 3",
            )
        result[name] = {"name": name, "count": int(count)}
    return [result[name] for name in sorted(result)]


def get(entry: Mapping[str, Any], name: str) -> Any:
    """A field, whatever its case: Go's encoding/json does not look at it."""
    if name in entry:
        return entry[name]
    return next((value for key, value in entry.items() if key.lower() == name.lower()), None)


def _list(content: Mapping[str, Any], name: str) -> list[Any]:
    value = content.get(name)
    if value is not None and not isinstance(value, list):
        raise ConfigError(
            "the field is no list", where=f"the kustomization's {name}", hint="see Kustomize's reference"
        )
    return value or []


def _maps(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [entry for entry in _list(content, name) if isinstance(entry, dict)]


def _map(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = content.get(name)
    if value is not None and not isinstance(value, dict):
        raise ConfigError(
            "the field is no map", where=f"the kustomization's {name}", hint="see Kustomize's reference"
        )
    return value or {}
