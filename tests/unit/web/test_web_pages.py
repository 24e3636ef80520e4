"""The pages: right HTML, everything escaped, no script, no cookie, and what they show."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from html_checks import check
from web_records import DAY, NOW, line, told

from becalm.web.app import application
from becalm.web.breaks import breakable
from becalm.web.metrics import Metrics
from becalm.web.recent import Recent
from becalm.web.records import State, read

HOSTILE = "<script>alert('x')</script>\"'&amp;{{ 7 * 7 }}\u202e</td></table>"
CSS = (resources.files("becalm.web") / "static" / "becalm.css").read_text()


def site(
    *lines: bytes,
    state: State | None = None,
    page: bool = True,
    reason: str | None = None,
    hosts=None,
    names=(),
):
    recent = Recent()
    metrics = Metrics(recent, now=lambda: NOW)
    for one in lines:
        record = read(one)
        recent.add(record)
        metrics.add(record)
    if state:
        recent.tell(state)
    app = application(
        recent,
        metrics,
        healthy=lambda: reason,
        ready=lambda: reason,
        page=page,
        hosts=hosts,
        names=names,
        now=lambda: NOW,
    )
    app.testing = False
    return app.test_client()


def shown(client, path: str, status: int = 200):
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return check(answer.text)


EVERYTHING = [
    line("argocd_pay", outcome="cached", source="kustomize", at=NOW - 86_000),
    line("billing", outcome="failed", code=5, error="templates/a.yaml:12: nil pointer; set image.tag"),
    line("edge", outcome="timeout", killed=1), line("crm", outcome="cancelled"), line("hr", outcome="overloaded"), line(""),
    line("shop"),
]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/", "/?outcome=failed", "/?q=shop", "/?q=none", "/?outcome=%3Cb%3E&q=%22%3E%3Cb%3E", "/apps/shop", "/apps/billing",
             "/apps/argocd_pay", "/apps/edge", "/apps/crm", "/apps/hr", "/certificates"],
)  # fmt: skip
def test_pages_are_right(path):
    shown(site(*EVERYTHING), path)


@pytest.mark.parametrize("path", ["/", "/certificates"])
def test_empty_pages_are_right_and_say_so(path):
    assert re.search("No render yet|No certificate", shown(site(), path).text)


def test_an_app_without_details_is_right():
    page = shown(site(json.dumps({"app": "new", "outcome": "failed", "at": NOW}).encode()), "/apps/new")
    assert "No details are known" in page.text


def test_what_strangers_name_is_escaped_everywhere():
    def hostile(value):
        if isinstance(value, str):
            return HOSTILE
        if isinstance(value, list):
            return [hostile(one) for one in value]
        return {key: hostile(one) for key, one in value.items()} if isinstance(value, dict) else value

    record = {**hostile(told()), "outcome": "rendered", "source": "helm", "stages": {HOSTILE[:40]: 1.0}}
    record["diffs"] = [{"object": HOSTILE, "before": f"a: {HOSTILE}\n", "after": f"b: {HOSTILE}\n"}]
    failed = {**record, "outcome": "failed", "diffs": []}
    client = site(json.dumps(record).encode(), json.dumps(failed).encode())
    page = shown(client, "/")
    links = [one["href"] for one in page.all("a") if (one["href"] or "").startswith("/apps/")]
    assert links
    for path in ("/", f"/?q={'%3Cscript%3E'}", links[0], "/certificates"):
        page = shown(client, path)
        assert "alert('x')" in page.text or "%3C" in path
        assert "49" not in page.text.replace("1.49", "")


@pytest.mark.parametrize("name", ["a b", "a/b", "ü", "a?b#c", "..%2f", "a%b", "x" * 253])
def test_links_lead_to_apps_whatever_their_names_are(name):
    client = site(line(name))
    links = [one["href"] for one in shown(client, "/").all("a") if (one["href"] or "").startswith("/apps/")]
    assert shown(client, links[0]).all("h1")


def test_the_first_page_tells_each_render():
    text = " ".join(shown(site(*EVERYTHING, state=State(queue=1, rendering=2)), "/").text.split())
    for wanted in (
        "2 running, 1 waiting",
        "7 of 7 latest renders",
        "argocd_pay",
        "nil pointer",
        "1 min ago",
        "2026-09-21T14:12:20Z",
        "1.25 s",
        "kustomize",
        "overloaded",
        "33%",
    ):
        assert wanted in text


def test_filters_narrow_the_list():
    client = site(*EVERYTHING)
    assert {
        one.text
        for one in [shown(client, "/?outcome=failed")]
        if "billing" in one.text and "argocd_pay" not in one.text
    }
    page = shown(client, "/?q=PAY")
    assert "argocd_pay" in page.text
    assert "billing" not in page.text
    assert page.all("input")[0]["value"] == "PAY"
    assert "Nothing fits" in shown(client, "/?q=nothing-like-it").text


def test_a_filter_finds_apps_that_were_not_rendered_lately():
    lines = [line("quiet-one"), *(line(f"busy-{number % 3}") for number in range(250))]
    client = site(*lines)
    assert "quiet-one" not in shown(client, "/").text
    assert "quiet-one" in shown(client, "/?q=quiet").text


def test_an_app_shows_what_was_done_and_why():
    page = shown(site(line()), "/apps/shop")
    text = " ".join(page.text.split())
    for wanted in ("default", "apps/shop", "the dependency db is not pinned", "Secret/space/db", "data.password", "randAlphaNum",
                   "templates/secret.yaml:7", "The autoscaler owns it.", "core/replicas", "strip", "spec.replica", "CN=shop",
                   "12 objects, 34.6 kB", "queue 500 ms"):  # fmt: skip
        assert wanted in text
    assert text.index("Secret/space/db") < text.index("data.password")


def test_differences_have_signs_and_elements_not_colour_alone():
    page = shown(site(line()), "/apps/shop")
    assert (len(page.all("ins")), len(page.all("del"))) == (1, 2)
    assert "+1" in page.text
    assert "−2" in page.text  # noqa: RUF001  # a true minus is as wide as the plus


def test_details_of_an_earlier_render_say_so():
    nothing = {"stabilised": [], "changes": [], "unknown": [], "diffs": [], "certificates": []}
    page = shown(
        site(line(at=NOW - 3600), line(outcome="failed", error="no such file", **nothing)), "/apps/shop"
    )
    assert "no such file" in page.text
    assert "The details below are of the render" in page.text
    assert "core/replicas" in page.text


def test_certificates_are_in_the_order_of_their_changes():
    base = {"path": "p", "subject": "", "from": NOW - DAY}
    certificates = [
        {**base, "object": "later", "until": NOW + 900 * DAY, "changes": NOW + 500 * DAY},
        {**base, "object": "soon", "until": NOW + 90 * DAY, "changes": NOW + 5 * DAY},
        {**base, "object": "expired", "until": NOW - 3600, "changes": 0},
        {**base, "object": "foreign", "until": NOW + 50 * DAY, "changes": 0},
    ]
    page = shown(site(line(certificates=certificates)), "/certificates")
    places = [page.text.index(name) for name in ("expired", "soon", "foreign", "later")]
    assert places == sorted(places)
    labels = [one["aria-label"] for one in page.all("svg") if "aria-label" in one]
    assert labels[0].endswith("it has expired")
    assert all(re.fullmatch(r"[\d.]+%?", one["x"]) for one in page.all("rect"))


@pytest.mark.parametrize(
    "path", ["/nothing", "/apps/unknown", "/apps/", "/static/app.py", "/static/..%2fapp.py"]
)
def test_what_is_not_there_is_a_page_too(path):
    page = shown(site(line()), path, 404)
    assert "There is no such page" in page.text


def test_answers_carry_a_strict_policy_and_no_cookie():
    client = site(line())
    for path in ("/", "/apps/shop", "/certificates", "/none", "/metrics", "/healthz", "/static/becalm.css"):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self' data:")
        assert "script" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Set-Cookie" not in headers
        assert "Location" not in headers
        assert "werkzeug" not in headers.get("Server", "").lower()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/apps/shop"])
def test_only_reading_is_answered(method, path):
    answer = site(line()).open(path, method=method)
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


def test_the_name_that_a_client_asks_for_is_not_repeated():
    client = site(line())
    for path in ("/", "/apps/shop/", "/certificates/", "//certificates", "/none"):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert "evil.example" not in answer.text + str(answer.headers)


def test_at_a_loopback_address_other_names_are_refused():
    client = site(line(), hosts=("localhost", "127.0.0.1", "[::1]"))
    for host, status in (
        ("localhost:9360", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:9360", 200),
        ("evil.example", 400),
        ("localhost.evil.example", 400),
    ):
        assert client.get("/", headers={"Host": host}).status_code == status
        assert client.get("/metrics", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("host", "is_shown"),
    [
        ("10.1.2.3:9360", True), ("[fd00::1]:9360", True), ("localhost:9360", True), ("argocd-becalm:9360", True),
        ("argocd-becalm.argocd.svc", True), ("argocd-becalm.argocd.svc.cluster.local:9360", True), ("becalm.example", True),
        ("Becalm.Example:443", True), ("evil.example", False), ("becalm.example.evil.example", False), ("x.svc.evil.example", False),
        ("10.1.2.3.evil.example", False), ("evil.example.", False), ("", False), ("[::1].evil.example", False),
    ],
)  # fmt: skip
def test_pages_are_shown_by_names_that_no_stranger_can_have(host, is_shown):
    client = site(line(), names=("Becalm.example",))
    for path in ("/", "/apps/shop", "/certificates"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == (200 if is_shown else 400)
        assert is_shown or "shop" not in answer.text
    for path in ("/healthz", "/metrics"):
        assert client.get(path, headers={"Host": host}).status_code == 200


def test_health_is_a_word_or_a_reason_in_one_line():
    assert (site().get("/healthz").text, site().get("/readyz").text) == ("ok\n", "ok\n")
    for path in ("/healthz", "/readyz"):
        answer = site(reason="the sample\n does not render").get(path)
        assert (answer.status_code, answer.text) == (503, "the sample does not render\n")


def test_without_pages_health_and_metrics_remain():
    client = site(line(), page=False)
    for path, status in (
        ("/", 404),
        ("/apps/shop", 404),
        ("/certificates", 404),
        ("/static/becalm.css", 404),
        ("/healthz", 200),
        ("/metrics", 200),
    ):
        answer = client.get(path)
        assert answer.status_code == status
        assert "<" not in answer.text or path == "/metrics"


def test_a_bug_shows_no_text_of_its_own(capsys):
    recent = Recent()

    def broken() -> str | None:
        raise ValueError("hunter2")

    app = application(recent, Metrics(recent), healthy=broken, ready=broken, page=True)
    answer = app.test_client().get("/healthz")
    assert (answer.status_code, answer.text) == (500, "Internal error\n")
    error = capsys.readouterr().err
    assert "ValueError" in error
    assert "hunter2" not in error


def test_the_stylesheet_is_asked_for_again_and_sent_once():
    client = site()
    first = client.get("/static/becalm.css")
    assert first.headers["Content-Type"] == "text/css; charset=utf-8"
    again = client.get("/static/becalm.css", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert "Content-Security-Policy" in again.headers


def colours(text: str) -> dict[str, tuple[int, int, int]]:
    found = re.findall(r"--([a-z-]+): #([0-9a-f]{6});", text)
    return {name: tuple(int(code[at : at + 2], 16) for at in (0, 2, 4)) for name, code in found}


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """WCAG 2.2, contrast ratio."""

    def luminance(colour) -> float:
        linear = [
            c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "grounds"),
    [("ink", "ground sheet raised sea-wash good-wash bad-wash warn-wash"), ("soft", "ground sheet raised sea-wash"), ("sea-ink", "ground sheet sea-wash"),
     ("good", "sheet good-wash"), ("warn", "sheet warn-wash"), ("bad", "sheet bad-wash ground"), ("foam", "deep")],
)  # fmt: skip
def test_text_has_enough_contrast(scheme, ink, grounds):
    light, dark = CSS.split("@media (prefers-color-scheme: dark)", 1)
    palette = colours(light) if scheme == "light" else {**colours(light), **colours(dark)}
    for ground in grounds.split():
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)


def test_the_stylesheet_heeds_what_people_prefer_and_loads_nothing():
    for wanted in (
        "prefers-color-scheme: dark",
        "prefers-reduced-motion: reduce",
        ":focus-visible",
        "forced-colors",
    ):
        assert wanted in CSS
    for unwanted in ("url(", "@import", "outline: 0"):
        assert unwanted not in CSS


def test_a_page_of_an_application_leads_to_each_part_that_has_something():
    page = shown(site(line("shop")), "/apps/shop")
    anchors = [one["href"].removeprefix("#") for one in page.all("a") if (one["href"] or "").startswith("#")]
    parts = [one["id"] for one in page.all("h2")]
    assert anchors[1:] == [part for part in parts if part in anchors]
    assert anchors[0] == "main"
    assert {"stabilised", "normalised", "differences", "certificates"} <= set(anchors)


def test_a_failed_render_claims_no_output():
    page = shown(site(line("billing", outcome="failed", code=5, runs=0)), "/apps/billing")
    assert "Output" not in page.text
    assert "Helm runs" not in page.text


def test_long_names_go_on_after_their_separators():
    found = breakable("Deployment.apps/shop/web spec.a[0].b templates/<a>.yaml:3 1.5")
    assert found == (
        "Deployment.<wbr>apps/<wbr>shop/<wbr>web spec.<wbr>a<wbr>[0].b templates/&lt;a&gt;.yaml:<wbr>3 1.<wbr>5"
    )
