"""The Flask application: health, metrics and pages. Read-only, without cookies, scripts or anything from elsewhere."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any, Final

from flask import Blueprint, Flask, Response, abort, render_template, request
from werkzeug.exceptions import HTTPException

from becalm import __version__
from becalm.derive import clock
from becalm.errors import bug
from becalm.web import breaks, times, views
from becalm.web.metrics import Metrics
from becalm.web.recent import Recent
from becalm.web.records import OUTCOMES

#: A reason in one line why something is not so; None where it is.
Check = Callable[[], str | None]

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")
"""Names under which a loopback address is asked for. Another one is a name that a stranger's DNS points here."""

_STATIC: Final = {"becalm.css": "text/css; charset=utf-8", "becalm.svg": "image/svg+xml"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


_PORT: Final = re.compile(r":[0-9]{1,5}\Z")
#: Names that nobody outside of a cluster can have made: a single word, or those of Services.
_OF_THE_CLUSTER: Final = re.compile(r"[a-z0-9-]+|([a-z0-9-]+\.)+svc(\.cluster\.local)?")


def _asked_host() -> str:
    return _PORT.sub("", request.environ.get("HTTP_HOST", "").lower())


def _refuse_other_names(hosts: frozenset[str]) -> None:
    """Answer to known names only; Werkzeug's own TRUSTED_HOSTS takes no IPv6 address."""
    if _asked_host() not in hosts:
        abort(400)


def _refuse_names_of_strangers(names: frozenset[str]) -> None:
    """Show pages by address, or by a name of the cluster or of the operator.

    A page elsewhere could read them through a name of its own, which it lets point to a pod (DNS rebinding).
    """
    host = _asked_host()
    if host in names or _OF_THE_CLUSTER.fullmatch(host):
        return
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        abort(400)


def application(  # noqa: PLR0913  # each is one thing that the process chooses
    recent: Recent,
    metrics: Metrics,
    *,
    healthy: Check,
    ready: Check,
    page: bool,
    hosts: Sequence[str] | None = None,
    names: Sequence[str] = (),
    now: Callable[[], float] = clock.now,
) -> Flask:
    """The application.

    Args:
        recent: what the pages show.
        metrics: what /metrics answers.
        healthy: for /healthz.
        ready: for /readyz.
        page: whether there are pages at all.
        hosts: the only names that the process answers to, with any port; None for all.
        names: those by which pages may be asked for beside addresses and names of the cluster, where `hosts` is None.
        now: the clock, in seconds since 1970.
    """
    app = Flask("becalm.web", static_folder=None, template_folder="templates")
    # Without them a path has one form only, and no redirect repeats the Host that a client sent.
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.config.update(
        PROVIDE_AUTOMATIC_OPTIONS=False,
        MAX_CONTENT_LENGTH=0,
    )
    if hosts is not None:
        app.before_request(partial(_refuse_other_names, frozenset(hosts)))
    app.register_blueprint(_machines(metrics, healthy, ready))
    if page:
        pages = _pages(recent, now)
        if hosts is None:
            pages.before_request(partial(_refuse_names_of_strangers, frozenset(map(str.lower, names))))
        app.register_blueprint(pages)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update(
        iso=times.iso, date=times.date, duration=times.duration, size=times.size,
        relative=lambda at: times.relative(at, now()), breakable=breaks.breakable,
    )  # fmt: skip
    app.jinja_env.globals.update(version=__version__, outcomes=OUTCOMES)
    app.after_request(_secured)
    app.register_error_handler(HTTPException, _refusal(is_page=page))
    app.register_error_handler(Exception, _failure)
    return app


def _secured(response: Response) -> Response:
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _text(text: str, status: int = 200) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")


def _refusal(*, is_page: bool) -> Callable[[HTTPException], Response]:
    def refuse(error: HTTPException) -> Response:
        status = error.code or 500
        if status == 404 and is_page:
            return Response(render_template("missing.html"), 404)
        response = _text(error.name, status)
        for name, value in error.get_headers():
            if name == "Allow":
                response.headers[name] = value
        return response

    return refuse


def _failure(error: Exception) -> Response:
    """A bug: where it is goes to stderr, without its text; nothing of it goes to the client."""
    sys.stderr.write(bug(error))
    return _text("Internal error", 500)


def _machines(metrics: Metrics, healthy: Check, ready: Check) -> Blueprint:
    part = Blueprint("machines", "becalm.web")

    def answer(check: Check) -> Response:
        reason = check()
        return _text("ok") if reason is None else _text(" ".join(reason.split()) or "not ok", 503)

    @part.get("/healthz")
    def healthz() -> Response:
        return answer(healthy)

    @part.get("/readyz")
    def readyz() -> Response:
        return answer(ready)

    @part.get("/metrics")
    def scrape() -> Response:
        body, content_type = metrics.written(request.headers.get("Accept", ""))
        return Response(body, content_type=content_type)

    return part


def _pages(recent: Recent, now: Callable[[], float]) -> Blueprint:
    part = Blueprint("pages", "becalm.web")

    def page(name: str, **values: Any) -> Response:
        return Response(render_template(name, **values))

    @part.get("/")
    def index() -> Response:
        wanted = views.narrowed(request.args.get("outcome", ""), request.args.get("q", ""))
        return page("index.html", view=views.overview(recent, wanted, now()))

    # A name may hold anything: of an application elsewhere than in Argo CD's namespace it is NAMESPACE_NAME.
    @part.get("/apps/<path:name>")
    def app(name: str) -> Response:
        found = recent.app(name)
        if found is None:
            abort(404)
        return page("app.html", view=views.detail(found, now()))

    @part.get("/certificates")
    def certificates() -> Response:
        found = [(one.latest.app, certificate) for one, certificate in recent.certificates(now())]
        return page("certificates.html", view=views.timeline(found, now()))

    @part.get("/static/<name>")
    def static(name: str) -> Response:
        if name not in _STATIC:
            abort(404)
        response = Response(_packaged(name), content_type=_STATIC[name])
        response.headers["Cache-Control"] = (
            "no-cache"  # asked for again each time, sent once for each version
        )
        response.add_etag()
        response.make_conditional(request)
        return response

    return part


@cache
def _packaged(name: str) -> bytes:
    return (resources.files("becalm.web") / "static" / name).read_bytes()
