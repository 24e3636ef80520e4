"""What every page must keep to, checked without a browser."""

from __future__ import annotations

from html.parser import HTMLParser

import html5lib

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
ALLOWED = {
    "a", "bdi", "body", "button", "caption", "code", "dd", "del", "details", "div", "dl", "dt", "footer", "form", "h1", "h2",
    "head", "header", "html", "input", "ins", "label", "li", "line", "link", "main", "meta", "nav", "option", "p", "path",
    "rect", "section", "select", "span", "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "time", "title", "tr",
    "ul", "wbr",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page: tag and attributes, with the texts of `title` and headings."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.problems: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.problems.append(f"<{tag}> has an attribute twice")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def check(text: str) -> Page:
    """The page, if it is right."""
    html5lib.HTMLParser(strict=True).parse(text)
    page = Page(text)
    assert page.problems == []
    assert {tag for tag, _ in page.elements} <= ALLOWED
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), f"<{tag} {name}>"
            assert name != "style", f"<{tag} style> would need a looser policy"
            if name in ("href", "src", "action"):
                assert value, f"<{tag} {name}> is empty"
                assert value[0] in "/#", f"<{tag} {name}={value}> leads elsewhere"
                assert value[:2] != "//", f"<{tag} {name}={value}> leads elsewhere"
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    labelled = {attributes.get("for") for attributes in page.all("label")}
    for tag in ("input", "select"):
        for attributes in page.all(tag):
            assert attributes.get("id") in labelled, f"<{tag}> has no label"
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name) is None or attributes[name] in ids
    assert page.all("html")[0]["lang"] == "en"
    assert (len(page.all("main")), len(page.all("h1"))) == (1, 1)
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(attributes.get("scope") for attributes in page.all("th"))
    assert all("aria-label" in one or "aria-hidden" in one or "x" in one for one in page.all("svg"))
    return page
