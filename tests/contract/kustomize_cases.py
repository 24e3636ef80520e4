"""Applications of Kustomize: what Argo CD's source.kustomize says, and the commands that it runs for that."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from applications import array, pairs, text, write

BASE = {
    "base/kustomization.yaml": "resources: [all.yaml]\n",
    "base/all.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web   # kept by nobody\nspec:\n  replicas: 1\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n"
        "      containers:\n      - {name: web, image: 'web:1.0'}\n      - {name: side, image: 'registry.example:5000/side:1'}\n"
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, annotations: {a: '1'}}\ndata: {k: v}\n"
    ),
    "components/tls/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator:\n- {name: tls, literals: [a=b]}\n"
    ),
    "components/log/kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator:\n- {name: log, literals: [a=b]}\n"
    ),
    "apps/web/patch.yaml": "- {op: replace, path: /data/k, value: from-file}\n",
}
PLAIN = "resources:\n- ../../base\n"
FULL = """\
# A kustomization with everything.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../base
namePrefix: old-
nameSuffix: -old
namespace: old
commonLabels:
  common: old
labels:
- pairs: {plain: old}
- pairs: {deep: old}
  includeTemplates: true
- pairs: {sel: old}
  includeSelectors: true
commonAnnotations:
  note: old
images:
- {name: web, newName: old/web, newTag: "0.1"}
- {name: 'registry.example:5000/side', digest: 'sha256:aa'}
- {name: zeta, newTag: "9"}
replicas:
- {name: web, count: 7}
components:
- ../../components/log
patches:
- {target: {kind: ConfigMap, name: config}, patch: '[{"op": "add", "path": "/data/first", "value": "1"}]'}
"""
OLD = "bases: [../../base]\nNAMEPREFIX: old-\nimageTags:\n- {name: web, newTag: '3'}\ncommonLabels: {one: old}\n"
VARIABLES = {"ARGOCD_APP_NAME": "my-app", "ARGOCD_APP_REVISION": "abc123", "ARGOCD_APP_NAMESPACE": "space"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """`edits` are argument lists for `kustomize edit`; `patches` are what Argo CD appends by itself."""

    name: str
    parameters: list[dict]
    edits: list[list[str]]
    patches: list[dict] = field(default_factory=list)
    kustomization: str = PLAIN
    file: str = "kustomization.yaml"


def _images(*given: str) -> tuple[list[dict], list[list[str]]]:
    return [array("images", *given)], [["set", "image", *given]]


def _labels(*flags: str, **labels: str) -> tuple[list[dict], list[list[str]]]:
    names = {"--force": "forceCommonLabels", "--without-selector": "labelWithoutSelector",
             "--include-templates": "labelIncludeTemplates"}  # fmt: skip
    given = [pairs("commonLabels", **labels), *(text(names[flag], "true") for flag in flags)]
    return given, [["add", "label", *flags, *(f"{key}:{value}" for key, value in labels.items())]]


def _case(name: str, both: tuple[list[dict], list[list[str]]], kustomization: str = PLAIN) -> Case:
    return Case(name=name, parameters=both[0], edits=both[1], kustomization=kustomization)


_PATCH = {"target": {"kind": "ConfigMap"}, "patch": '[{"op": "add", "path": "/data/x", "value": "y: z"}]'}
_MERGE = {"patch": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort}\n"}
_RENAME = {"path": "patch.yaml", "target": {"group": "", "version": "v1", "kind": "ConfigMap", "name": "config"},
           "options": {"allowNameChange": True}}  # fmt: skip
_SELECT = {"patch": '[{"op": "remove", "path": "/data/k"}]', "target": {"annotationSelector": "a=1"}}

CASES = [
    Case(name="nothing", parameters=[], edits=[]),
    Case(name="nothing-of-much", parameters=[], edits=[], kustomization=FULL),
    *(
        case
        for of, kustomization in (("plain", PLAIN), ("full", FULL), ("old", OLD))
        for case in (
            Case(name=f"prefix-{of}", parameters=[text("namePrefix", "new-")],
                 edits=[["set", "nameprefix", "--", "new-"]], kustomization=kustomization),
            Case(name=f"suffix-{of}", parameters=[text("nameSuffix", "-new")],
                 edits=[["set", "namesuffix", "--", "-new"]], kustomization=kustomization),
            Case(name=f"namespace-{of}", parameters=[text("namespace", "new")],
                 edits=[["set", "namespace", "--", "new"]], kustomization=kustomization),
            _case(f"image-tag-{of}", _images("web:2.0"), kustomization),
            _case(f"image-keep-{of}", _images("web=*:2.0", "registry.example:5000/side=x/y:*"), kustomization),
            Case(name=f"replicas-{of}", parameters=[pairs("replicas", web="3")],
                 edits=[["set", "replicas", "web=3"]], kustomization=kustomization),
            _case(f"labels-{of}", _labels(team="shop", a="b:c"), kustomization),
            _case(f"labels-without-selector-{of}", _labels("--without-selector", team="shop", z="1"), kustomization),
            _case(f"labels-in-templates-{of}", _labels("--without-selector", "--include-templates", team="shop"), kustomization),
            Case(name=f"annotations-{of}", parameters=[pairs("commonAnnotations", one="1", two='"q"')],
                 edits=[["add", "annotation", "one:1", 'two:"q"']], kustomization=kustomization),
            Case(name=f"patches-{of}", parameters=[text("patches", yaml.safe_dump([_PATCH, _MERGE, _RENAME]))], edits=[],
                 patches=[_PATCH, _MERGE, _RENAME], kustomization=kustomization),
            Case(name=f"components-{of}", parameters=[array("components", "../../components/tls", "../../components/log")],
                 edits=[["add", "component", "../../components/tls", "../../components/log"]], kustomization=kustomization),
        )
    ),
    Case(name="prefix-with-a-dash", parameters=[text("namePrefix", "--new-")], edits=[["set", "nameprefix", "--", "--new-"]]),
    _case("image-new-name", _images("web=other/web")),
    _case("image-all", _images("web=reg.example:5000/a/web:1.2@sha256:bb")),
    _case("image-digest", _images("web@sha256:cc", "registry.example:5000/side@sha256:dd")),
    _case("image-twice", _images("web:1", "web:2")),
    Case(name="image-variable", parameters=[array("images", "web:$ARGOCD_APP_REVISION$SECRET")],
         edits=[["set", "image", "web:abc123"]]),
    Case(name="label-variable", parameters=[pairs("commonLabels", rev="$ARGOCD_APP_REVISION", n="${ARGOCD_APP_NAME}")],
         edits=[["add", "label", "rev:abc123", "n:my-app"]]),
    _case("labels-forced", _labels("--force", common="new"), FULL),
    _case("labels-forced-without-selector", _labels("--force", "--without-selector", plain="new", q="1"), FULL),
    _case("labels-forced-in-templates", _labels("--force", "--without-selector", "--include-templates", deep="new"), FULL),
    Case(name="annotations-verbatim", parameters=[pairs("commonAnnotations", n="$ARGOCD_APP_NAME")],
         edits=[["add", "annotation", "n:$ARGOCD_APP_NAME"]]),
    Case(name="annotations-replaced", edits=[["add", "annotation", "n:my-app"]],
         parameters=[pairs("commonAnnotations", n="$ARGOCD_APP_NAME"), text("commonAnnotationsEnvsubst", "true")]),
    Case(name="annotations-forced", edits=[["add", "annotation", "--force", "note:new"]], kustomization=FULL,
         parameters=[pairs("commonAnnotations", note="new"), text("forceCommonAnnotations", "true")]),
    Case(name="annotations-of-anything", edits=[["add", "annotation", 'json:{"a": ["b: c", "\'"]}\n#x', "empty:"]],
         parameters=[pairs("commonAnnotations", json='{"a": ["b: c", "\'"]}\n#x', empty="")]),
    Case(name="components-by-glob", parameters=[array("components", "../../components/*")],
         edits=[["add", "component", "../../components/*"]]),
    Case(name="components-missing", edits=[["add", "component", "../../components/tls"]],
         parameters=[array("components", "../../components/none", "../../components/tls"), text("ignoreMissingComponents", "true")]),
    Case(name="patches-as-json", parameters=[text("patches", '[{"patch": "[{\\"op\\": \\"remove\\", \\"path\\": \\"/data/k\\"}]", "target": {"annotationSelector": "a=1"}}]')],
         edits=[], patches=[_SELECT]),
    Case(name="another-file", file="Kustomization", parameters=[text("namePrefix", "new-")],
         edits=[["set", "nameprefix", "--", "new-"]], kustomization=FULL),
    Case(name="short-ending", file="kustomization.yml", parameters=[text("nameSuffix", "-new")],
         edits=[["set", "namesuffix", "--", "-new"]]),
    Case(name="images-twice-in-the-file", edits=[["set", "image", "side=x:1"]], parameters=[array("images", "side=x:1")],
         kustomization=PLAIN + "images:\n- {name: web, newTag: '1'}\n- {name: web, newTag: '2'}\n"),
    Case(name="a-second-document", edits=[["set", "nameprefix", "--", "n-"]], parameters=[text("namePrefix", "n-")],
         kustomization=PLAIN + "---\n# end\n"),
    Case(name="patches-with-nulls", edits=[], parameters=[text("patches", yaml.safe_dump([{**_PATCH, "options": None, "path": None}]))],
         patches=[_PATCH]),
    Case(name="all-together", kustomization=FULL, patches=[_PATCH],
         parameters=[text("namePrefix", "n-"), text("nameSuffix", "-s"), array("images", "web=x:1"), pairs("replicas", web="2"),
                     pairs("commonLabels", l="1"), pairs("commonAnnotations", a="2"), text("namespace", "ns"),
                     text("patches", yaml.safe_dump([_PATCH])), array("components", "../../components/tls")],
         edits=[["set", "nameprefix", "--", "n-"], ["set", "namesuffix", "--", "-s"], ["set", "image", "web=x:1"],
                ["set", "replicas", "web=2"], ["add", "label", "l:1"], ["add", "annotation", "a:2"],
                ["set", "namespace", "--", "ns"], ["add", "component", "../../components/tls"]]),
]  # fmt: skip


def repository(root: Path, case: Case) -> Path:
    return write(root, {**BASE, f"apps/web/{case.file}": case.kustomization})


def stock(kustomize: Path, root: Path, case: Case) -> str:
    """What Argo CD runs for its own Kustomize source (util/kustomize/kustomize.go, `Build`)."""
    app = root / "apps" / "web"
    components = [edit for edit in case.edits if edit[:2] == ["add", "component"]]
    for edit in case.edits:
        if edit not in components:
            subprocess.run([kustomize, "edit", *edit], cwd=app, check=True, capture_output=True)
    if case.patches:
        content = yaml.safe_load((app / case.file).read_text())
        content["patches"] = [*content.get("patches", []), *case.patches]
        (app / case.file).write_text(yaml.safe_dump(content))
    for edit in components:
        subprocess.run([kustomize, "edit", *edit], cwd=app, check=True, capture_output=True)
    done = subprocess.run([kustomize, "build", app], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def find_kustomize(tools: Path) -> Path | None:
    """A kustomize with `edit`, which kubectl does not have."""
    found = sorted(tools.glob("kustomize-*/kustomize"))
    other = shutil.which("kustomize")
    return found[-1] if found else Path(other) if other else None
