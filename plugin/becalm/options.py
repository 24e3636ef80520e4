"""The options of the command line, in groups, and the texts of `--help`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from becalm import __version__
from becalm.console import Ended
from becalm.usage import Parser

Commands = argparse._SubParsersAction  # noqa: SLF001  # argparse has no public name for it
Run = Callable[[argparse.Namespace], str | Ended]

_EXAMPLES = """\
to see what a chart does, before anything is installed:
  becalm audit ./chart
  becalm verify ./chart --app shop --namespace shop --throwaway-seed

to render it as Argo CD would, with a seed of your own:
  becalm seed new ./seed
  becalm render ./chart --app shop --namespace shop --seed ./seed

Manifests go to stdout, complete or not at all. Errors go to stderr: the first line says what is
wrong, where, and what to do. `becalm COMMAND --help` explains each command.
"""
_GENERATE = """\
Renders the chart in the current directory. Argo CD runs this, from plugin.yaml; it sets the
ARGOCD_APP_... and KUBE_... variables. The operator sets, on the sidecar:

  BECALM_SEED_FILE           the seed, or a directory of seeds (default: /etc/becalm/seed)
  BECALM_SEED_ID             which of several seeds is used, by file name or fingerprint
  BECALM_CLUSTER             an id of the cluster that becomes part of every value (default: empty)
  BECALM_INSTANT             stands for the clock, RFC 3339 (default: 2024-01-01T00:00:00Z);
                             an app can set its own in source.plugin.env
  BECALM_CERTIFICATE_WINDOW  the part of its validity for which a certificate stays (default: 1/3)
  BECALM_CERTIFICATE_MARGIN  the part of its validity that is always left (default: 1/4)
  BECALM_CERTIFICATE_ANCHOR  when windows begin, RFC 3339 (default: each certificate has its own time)
  BECALM_RULES               switches of rules: "+openshift -core/status", or "-all"
  BECALM_RULES_DIR           a directory of further rule files
  BECALM_APP_RULES           where apps may switch and write rules: all (default), none, or kinds
                             such as "apps/Deployment Service"
  BECALM_DEFINITIONS_DIR     a directory of the cluster's CustomResourceDefinitions, for their defaults
  BECALM_CACHE_DIR           where renders, keys and charts are kept, encrypted where secret; "off" for nowhere
                             (default: the user's cache)
  BECALM_HELM                the helm binary (default: helm in the PATH)
  BECALM_KUSTOMIZE           kustomize, kubectl, or a path of one (default: the first of them in the PATH)
  BECALM_KUSTOMIZE_VERSIONS  others that apps may choose by `version`: "v5.4.3=/path v5.8.1=/path"
  BECALM_KUSTOMIZE_BUILD_OPTIONS  further flags for `kustomize build`, such as --enable-helm
  BECALM_GIT_PROTOCOLS       what git may fetch remote bases by (default: https:ssh)
  BECALM_REPOSITORIES_DIR    Argo CD's repository Secrets, as folders of keys or as YAML
  BECALM_REPOSITORY_CONFIG   a repositories.yaml of helm, with credentials for repositories and names for @name
  BECALM_REGISTRY_CONFIG     a Docker config.json, with credentials for registries (oci://)
  BECALM_CA_FILE             certificates that servers are trusted by, instead of the system's
  BECALM_TLS_CERTS_DIR       certificates by host name, as in argocd-tls-certs-cm
  BECALM_CHART_REPOSITORIES  prefixes of repositories that apps may name (default: every https:// and oci://)
  BECALM_VALUES_FILE_URLS    prefixes of addresses of values files that apps may name (default: none)
  BECALM_LOOKUP              what lookup finds: empty (default), recorded, rendered or live (docs/lookup.md)
  BECALM_LOOKUP_ALLOW        what live may read: "v1/Secret:shop apps/v1/Deployment:@destination"
  BECALM_LOOKUP_PROJECTS     the projects whose applications are in this cluster, for live
  BECALM_STRICT              "true": refuse inputs that may change between two renders
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY  for downloads
  BECALM_CACHE_BYTES, BECALM_REDIS_URL, BECALM_REDIS_PASSWORD, BECALM_UNPINNED_SECONDS  of the cache of renders
  BECALM_SOCKET, BECALM_CONCURRENCY, BECALM_QUEUE, BECALM_DEADLINE, BECALM_WEB_ADDRESS, BECALM_WEB_PAGE, BECALM_WEB_NAMES,
  BECALM_CHILD_BYTES, BECALM_LOG
                             of `becalm serve`, which docs/service.md explains

An app team can set, in source.plugin.parameters, what Argo CD's own Helm, Kustomize and directory sources can
(releaseName, valueFiles, images, directory.recurse, ...) and becalm's own (becalm.epoch, becalm.rules, ...):
`becalm parameters` lists them all, docs/parameters.md explains them. In source.plugin.env it can set RELEASE_NAME,
NAMESPACE, VALUE_FILES and BECALM_INSTANT; parameters win.
"""
_SERVE = """\
Renders for `becalm generate` in a process that has everything loaded, with a queue, a cache, health, metrics and a
page, until SIGTERM. BECALM_SOCKET, BECALM_CONCURRENCY, BECALM_QUEUE, BECALM_DEADLINE, BECALM_CACHE_DIR, BECALM_WEB_ADDRESS and
BECALM_LOG say how; docs/service.md explains them. In the container `becalm sidecar` runs it.
"""
_SIDECAR = """\
Runs `becalm serve` and /var/run/argocd/argocd-cmp-server, which Argo CD mounts, and ends when either ends. This
is the entry point of the image; docs/install.md has the manifests.
"""
_SEED = """\
A seed is what all values are derived from: whoever reads it can compute them. Make it once, keep a backup of it.
"""
_RENDER = """\
Renders a chart as `becalm generate` would in Argo CD, and prints the manifests. The application's
name, project, namespace and cluster id are part of every derived value: give the same as in Argo CD
to get the same.
"""
_VERIFY = """\
Renders a chart in three separate processes with becalm, and twice with stock helm. Fails unless
becalm's outputs are byte for byte the same and differ from stock helm's only in fields in which stock
helm differs from itself, that show the time, or that a rule normalises. Lists what was stabilised: function, place in the chart, where it lands.
No value is ever shown.
"""
_CERTS = """\
Renders a chart and lists every certificate in the output, also those inside Secrets and caBundles: subject,
names, issuer, validity, when becalm replaces it, whether a rendered authority signed it, and where in the
same object its private key is. `--at T` looks at another day.
"""
_DERIVE = """\
Renders a chart and lists what becalm derives: the item (the place that owns a value, as --item-epoch
takes it), the function, the label, and a fingerprint. Equal fingerprints mean equal values, within one
application and seed; nothing else can be learnt from them.

  becalm derive ./chart --app shop --namespace shop --seed ./seed --object Secret/db --key password

Prints a value only with --reveal, only one, and only on a terminal.
"""
_EXPLAIN = """\
Renders a chart and lists what normalisation changes: object, field, rule, and why, and who switched the rule
on if it does not act by itself. A change that does something to the cluster once, at the first sync of an
object that was applied before, is marked. Then come fields that their kinds do not have, or whose values are of
another type: one of them makes Argo CD compare the whole object as raw text.
"""
_IGNORE = """\
Renders a chart and writes `ignoreDifferences`, with reasons and risks, for drift that no change of the manifest
can prevent, to paste into the Application, or with --format argocd-cm into the ConfigMap of Argo CD. It
finds what the render itself shows, such as weights under a Rollout; the rest has to be asked for:

  becalm rules ignores
  becalm ignore ./chart --app shop --namespace shop --throwaway-seed --entry updated-images
  becalm ignore ./chart --app shop --namespace shop --throwaway-seed \\
    --field 'Deployment.apps/web spec.template.metadata.annotations[a/b]'
"""
_LOOKUP = """\
Renders a chart and records everything that it looks up, also what is not there, in becalm.lookups.yaml beside it, for
the policy `recorded` (BECALM_LOOKUP or --lookup). Values of Secrets are sealed: only becalm with the same seed opens
them, for the same application. Commit the file.

  kubectl -n shop get secrets,configmaps -o yaml | becalm lookup record ./chart --app shop --namespace shop --seed ./seed --live -
  becalm lookup record ./chart --app shop --namespace shop --seed ./seed --kubectl
"""
_RULES = """\
Rules say which fields of rendered objects are taken away, filled in, or brought to the form that the cluster
stores, so that they never show as a difference. Most built-in rules act by themselves; packs of a provider, and
rules that need to know the cluster, act when they are switched on with `--rule +openshift` or BECALM_RULES on
the sidecar. `becalm explain` shows what they do to a chart, and who switched them.

  becalm rules list                 every built-in rule, by pack
  becalm rules ignores              what `becalm ignore` knows, where no rule can help
  becalm rules show core/status     one rule, with its reason and examples
  becalm rules check my-rules.yaml  whether a file is right
  becalm rules test my-rules.yaml   whether its rules do what its examples say
"""
_DISCOVER = """\
Prints `helm` for a directory with a Chart.yaml, `kustomize` for one with a kustomization, `chain` for one with both,
`directory` for one with other manifests (.yaml, .yml, .json), and nothing for any other. Argo CD takes text for a
yes, so this can be the command of `discover` in plugin.yaml; it needs no seed and no variable. Without `discover`,
as becalm comes, only applications that name becalm are rendered by it.
"""
_AUDIT = """\
Lists, without rendering, every call in the chart and its subcharts whose result depends on more than
its arguments, with how it is treated:

  draw            derived from the seed and from where the value lands
  clock           answered with the fixed instant
  clock-fallback  the fixed instant, where the function would read the clock
  order           a map's keys or values, in the order of the keys
  empty           helm itself answers with nothing, every time
"""
_PARAMETERS = """\
Lists what an application can set in source.plugin.parameters, as Argo CD's UI takes it. With --dynamic, which
Argo CD runs in an application's directory, the values of the chart there, with their defaults.
"""
_SEED_NEW = """\
Writes a fresh seed to a new file with mode 0600 and prints its fingerprint. Keep a backup:
losing or replacing the seed changes every derived value.
"""
_SEED_CREATE = """\
Makes a Secret with a fresh seed, from a pod of the cluster, with the pod's ServiceAccount (manifests/seed). A Secret
that is there already is never changed, and no error. Keep a backup of what was made: losing or replacing the
seed changes every derived value.
"""
_ADOPT = """\
Takes over a running app without rotating anything. Renders it, finds for everything that its chart draws the value that
live objects have there, and writes them, sealed, into becalm.pins.yaml beside the chart. Commit that file: it opens only
where the seed is, for this application. From then on the pinned values are rendered; everything else is derived.

  kubectl get secret,configmap,deployment --namespace shop --output yaml |
    becalm adopt ./chart --app shop --namespace shop --seed ./seed --live -

Lists what was taken over, what could not be, and why, and what the next sync therefore changes. Give all kinds of objects
that draws land in: webhook configurations for a caBundle, for example. With --check nothing is written, and the exit code
is 1 if the file would be another one or the next sync changes something. No value is ever shown.

To rotate a value later, raise its epoch (--item-epoch, the parameter becalm.epochs), or remove its entry. After the sync,
--prune removes entries that match nothing any more; by itself it needs no --live.
"""
_DIFF_LIVE = """\
Renders an application and compares every value of every Secret, and what depends on draws in other objects, with
live objects. Values are never shown: equal fingerprints mean equal values, within one application and seed. The exit code
is 1 if a value changes.

  kubectl get secret,configmap --namespace shop --output yaml |
    becalm diff-live ./chart --app shop --namespace shop --seed ./seed --live -
"""
_SEED_ROTATE = """\
Prepares an application for another seed: its pins are sealed with the new one, and what would be derived otherwise
under it is listed. With --keep all of that is pinned first, so that a new seed changes nothing until you raise an epoch
or remove a pin.

  becalm seed rotate ./chart --app shop --namespace shop --seed ./old --to ./new --keep

Commit becalm.pins.yaml in the same moment in which the sidecar gets the new seed (with several seeds in one Secret, in which
the application's becalm.seed names it). With --check nothing is written, and the exit code is 1 if a value would change.
"""
_DESCRIPTIONS = {
    "adopt": _ADOPT,
    "diff-live": _DIFF_LIVE,
    "rotate": _SEED_ROTATE,
    "generate": _GENERATE,
    "serve": _SERVE,
    "sidecar": _SIDECAR,
    "seed": _SEED,
    "render": _RENDER,
    "verify": _VERIFY,
    "certs": _CERTS,
    "derive": _DERIVE,
    "explain": _EXPLAIN,
    "ignore": _IGNORE,
    "rules": _RULES,
    "discover": _DISCOVER,
    "audit": _AUDIT,
    "parameters": _PARAMETERS,
    "lookup": _LOOKUP,
    "record": _LOOKUP,
    "new": _SEED_NEW,
    "create": _SEED_CREATE,
}


def root() -> tuple[Parser, Commands[Parser]]:
    """The parser of `becalm` itself, and what takes its commands."""
    parser = Parser(
        prog="becalm",
        description="Renders Helm charts and Kustomizations the same way every time, for Argo CD.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"becalm {__version__}")
    parser.set_defaults(run=parser.show, refuse=parser.refuse)
    return parser, parser.add_subparsers(metavar="COMMAND")


def command(commands: Commands[Parser], name: str, text: str, run: Run) -> Parser:
    """A command: its name, a line about it, and what runs it."""
    parser = commands.add_parser(
        name,
        help=text,
        description=_DESCRIPTIONS.get(name, f"{text[0].upper()}{text[1:]}."),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, refuse=parser.refuse)
    return parser


def family(commands: Commands[Parser], name: str, text: str) -> Commands[Parser]:
    """A command that has commands of its own."""
    parser = commands.add_parser(
        name,
        help=text,
        description=_DESCRIPTIONS.get(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=parser.show, refuse=parser.refuse)
    return parser.add_subparsers(metavar="COMMAND")


def add_output(parser: argparse.ArgumentParser) -> None:
    """The form of a report."""
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")


def add_request(parser: Parser) -> Parser:
    """All options that say what to render, and how."""
    parser.usage = "%(prog)s PATH --app NAME --namespace NS [OPTION ...]"
    parser.add_argument(
        "chart",
        type=Path,
        metavar="PATH",
        help="a chart's directory or .tgz file, or a directory with a kustomization or manifests",
    )
    application = parser.add_argument_group("application, the same as in Argo CD")
    _add_application(application)
    _add_parameters(application)
    _add_helm(parser.add_argument_group("helm"))
    _add_network(parser.add_argument_group("dependencies and charts from elsewhere"))
    _add_kustomize(parser.add_argument_group("the source, and Kustomize"))
    parser.add_argument(
        "--strict", action="store_true", help="refuse inputs that may change between two renders"
    )
    plain = parser.add_argument_group("plain directory of manifests").add_argument
    plain("--recurse", action="store_true", help="read files further below as well")
    plain(
        "--include", default="", metavar="GLOB", help="read only files that fit, for example '{web/*,*.json}'"
    )
    plain("--exclude", default="", metavar="GLOB", help="leave out files that fit")
    _add_seed(parser.add_argument_group("seed and rotation"))
    _add_time(parser.add_argument_group("time and certificates"))
    rules = parser.add_argument_group("normalisation").add_argument
    rules("--rule", action="append", default=[], metavar="SWITCH",
          help="switch rules: +all, +PACK, --rule=-PACK/RULE")  # fmt: skip
    rules("--rules", action="append", default=[], type=Path, metavar="FILE", help="a file of further rules")
    rules("--definitions", action="append", default=[], type=Path, metavar="PATH",
          help="a file or directory of CustomResourceDefinitions that the cluster has")  # fmt: skip
    rules("--app-rules", default="", metavar="SCOPE",
          help="where .becalm.yaml and annotations have a say: all (default), none, or kinds")  # fmt: skip
    return parser


def add_lookup(parser: argparse.ArgumentParser) -> None:
    """Where recorded objects come from."""
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument(
        "--live", metavar="FILE", help="objects from `kubectl get -o yaml` (or json), - for stdin"
    )
    one.add_argument("--kubectl", nargs="?", const="kubectl", metavar="FILE",
        help="ask the cluster by kubectl for exactly what is looked up")  # fmt: skip


def add_ignore(parser: argparse.ArgumentParser) -> None:
    """What to ignore, and where it is pasted."""
    add = parser.add_argument
    add("--format", choices=("application", "argocd-cm"), default="application", help="default: application")
    add("--entry", action="append", default=[], metavar="ID",
        help="an entry that the render does not show by itself")  # fmt: skip
    add("--field", action="append", default=[], metavar="'KIND.GROUP/NAME FIELD'",
        help="a field of an object, or of all objects of a kind")  # fmt: skip


def add_live(parser: argparse.ArgumentParser, *, is_needed: bool = True) -> argparse.ArgumentParser:
    """Where live objects are."""
    parser.add_argument("--live", action="append", required=is_needed, metavar="FILE",
        help="live objects, as `kubectl get --output yaml` prints them; - for standard input")  # fmt: skip
    return parser


def add_check(parser: argparse.ArgumentParser) -> None:
    """To look only."""
    parser.add_argument("--check", action="store_true", help="write nothing, and tell by the exit code")


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Where a seed is kept in a cluster."""
    add = parser.add_argument
    add("--namespace", default="argocd", metavar="NS", help="Argo CD's namespace (default: argocd)")
    add("--name", default="becalm-seed", metavar="NAME", help="the Secret's name (default: becalm-seed)")
    add("--key", default="seed", metavar="KEY", help="the seed's name in the Secret (default: seed)")


def _add_application(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--app", required=True, metavar="NAME", help="the Application's name, and the release's")
    add("--namespace", required=True, metavar="NS", help="the destination namespace")
    add("--project", default="default", metavar="P", help="the Application's project (default: default)")
    add("--cluster", default="", metavar="ID",
        help="the cluster's id, BECALM_CLUSTER of the sidecar (default: none)")  # fmt: skip


def _add_parameters(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--parameters",
        type=Path,
        metavar="FILE",
        help="what it sets in source.plugin.parameters: that list, or the whole Application, as YAML or JSON",
    )


def _add_helm(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-f", "--values", action="append", default=[], type=Path, metavar="FILE",
        help="a values file; can be repeated")  # fmt: skip
    add("--set", action="append", default=[], dest="sets", metavar="K=V",
        help="a value, as helm's --set; can be repeated")  # fmt: skip
    add("--kube-version", default="", metavar="V", help="the Kubernetes version to render for")
    add("--api-versions", action="append", default=[], metavar="A",
        help="an API version the cluster has; can be repeated")  # fmt: skip
    add("--is-upgrade", action="store_true", help="let .Release.IsUpgrade be true")
    add("--revision", type=_revision, default=1, metavar="N",
        help="what .Release.Revision is; more than 1 is an upgrade (default: 1)")  # fmt: skip
    add("--lookup", choices=("empty", "recorded", "rendered", "live"), default="",
        help="what lookup finds (default: BECALM_LOOKUP, else empty)")  # fmt: skip
    add("--helm", default="", metavar="FILE",
        help="the helm binary (default: BECALM_HELM, else helm in the PATH)")  # fmt: skip
    add(
        "--timeout",
        type=_seconds,
        default=50.0,
        metavar="S",
        help="seconds for one run of helm (default: 50)",
    )


def _add_network(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--chart-repository", default="", metavar="URL",
        help="render a chart from here, https:// or oci://; PATH is the application's directory")  # fmt: skip
    add("--chart-name", default="", metavar="NAME", help="its name")
    add("--chart-version", default="", metavar="V", help="its version")
    add("--repositories", type=Path, metavar="DIR", help="Argo CD's repository Secrets, as folders or YAML")
    add("--registry-config", type=Path, metavar="FILE", help="a Docker config.json, for registries")
    add("--repository-config", type=Path, metavar="FILE", help="a repositories.yaml of helm")
    add("--ca-file", type=Path, metavar="FILE", help="certificates that servers are trusted by")
    add("--pass-credentials", action="store_true",
        help="send a repository's credentials also to other hosts that its index names")  # fmt: skip


def _add_kustomize(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--source", choices=("helm", "kustomize", "chain", "directory"), default="",
        help="what PATH is rendered as (default: found out)")  # fmt: skip
    add("--root", type=Path, metavar="DIR",
        help="the repository, which nothing may leave (default: for Kustomize the Git checkout)")  # fmt: skip
    add("--kustomize", default="", metavar="FILE",
        help="kustomize or kubectl (default: BECALM_KUSTOMIZE, else the first in the PATH)")  # fmt: skip
    add("--build-options", default="", metavar="OPTIONS",
        help="flags for `kustomize build` (default: BECALM_KUSTOMIZE_BUILD_OPTIONS)")  # fmt: skip


def _add_seed(group: argparse._ArgumentGroup) -> None:
    one = group.add_mutually_exclusive_group()
    one.add_argument("--seed", type=Path, metavar="FILE", help="the seed file, or a directory of them")
    one.add_argument("--throwaway-seed", action="store_true", help="a seed for this run only, for previews")
    add = group.add_argument
    add("--seed-id", default="", metavar="ID", help="which of several seeds, by file name or fingerprint")
    add("--epoch", default="", metavar="E", help="the app's epoch: another one gives other values")
    add("--item-epoch", action="append", default=[], metavar="ITEM=E",
        help="an item's epoch, for example Secret/db/password=2")  # fmt: skip


def _add_time(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--instant", default="", metavar="T",
        help="stands for the clock, RFC 3339 (default: 2024-01-01T00:00:00Z)")  # fmt: skip
    add("--at", default="", metavar="T", help="when certificates are looked at, RFC 3339 (default: now)")
    add("--certificate-window", default="", metavar="F", help="part of a validity that stays (default: 1/3)")
    add("--certificate-margin", default="", metavar="F", help="part of a validity always left (default: 1/4)")
    add("--certificate-anchor", default="", metavar="T",
        help="when windows begin, RFC 3339 (default: each its own time)")  # fmt: skip


def _revision(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) < 2**31):
        raise ValueError
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, above 0 and at most 3600")
    return seconds
