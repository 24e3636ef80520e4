"""Labels: where a draw lands is what it is."""

from __future__ import annotations

import base64

from becalm.derive.labels import Label
from becalm.stabilise.epochs import Epochs
from becalm.stabilise.records import Draw, Enclosing, Records
from becalm.stabilise.settle import Settler

ROOT = "sample/templates/a.yaml"


def secret(**data: str) -> str:
    encoded = "".join(
        f"  {key}: {base64.b64encode(value.encode()).decode()}\n" for key, value in data.items()
    )
    return f"---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n{encoded}"


def records(*draws: Draw) -> Records:
    found = Records(draws={(draw.key, draw.arguments): draw for draw in draws})
    for draw in draws:
        enclosing = draw.parent
        while enclosing is not None:
            enclosing.draws.append(draw)
            if enclosing not in found.calls:
                found.calls.append(enclosing)
            enclosing = enclosing.parent
    return found


def draw(
    value: str, site: str, *, parent: Enclosing | None = None, given: tuple[str, ...] = (), root: str = ROOT
) -> Draw:
    return Draw(
        file="templates/a.yaml", root=root, key=f"{root}/{site}", name=f"{ROOT}/{site}", site=0,
        function="randAlphaNum", arguments="[16]", given=given, texts=(value,), known=False, parent=parent,
    )  # fmt: skip


def labelled(
    output: str, found: Records, settled: dict[tuple[str, str], Label] | None = None
) -> dict[str, Label]:
    named = Settler(output, found, "n", Epochs()).labels(settled or {})
    return {one.draw.key.removeprefix(one.draw.root + "/"): one.label for one in named}


def test_a_value_is_named_by_its_field() -> None:
    labels = labelled(secret(password="abcdefgh12345678"), records(draw("abcdefgh12345678", "x")))
    assert labels["x"].parts == ("landing", "", "Secret", "n", "db", "data.password", "", "value",
                                 "randAlphaNum", "[16]")  # fmt: skip


def test_equal_pieces_of_one_text_are_numbered_in_order() -> None:
    call = Enclosing(name="hex", scalars="{}", text="1a2b3c4d")
    pieces = [draw(text, f"p{i}", parent=call) for i, text in enumerate(("1a", "2b", "3c", "4d"))]
    labels = labelled(secret(key="1a2b3c4d"), records(*pieces))
    assert [labels[f"p{i}"].parts[-2:] for i in range(4)] == [
        ("randAlphaNum", "[16]"),
        ("repeat", 1),
        ("repeat", 2),
        ("repeat", 3),
    ]


def test_what_is_settled_keeps_its_label_and_nobody_else_gets_it() -> None:
    call = Enclosing(name="hex", scalars="{}", text="1a2b3c4d")
    new, old = draw("1a", "new", parent=call), draw("2b", "old", parent=call)
    taken = labelled(secret(key="1a2b3c4d"), records(draw("2b", "old", parent=call)))["old"]
    old.known = True
    labels = labelled(secret(key="1a2b3c4d"), records(new, old), {(old.key, old.arguments): taken})
    assert list(labels) == ["new"]
    assert labels["new"] != taken


def test_an_evaluation_that_lands_nowhere_joins_the_equal_one_that_lands() -> None:
    landed = Enclosing(name="password", scalars="{}", text="abcdefgh12345678")
    hashed = Enclosing(name="password", scalars="{}", text="zyxwvuts87654321")
    found = records(
        draw("zyxwvuts87654321", "sum", parent=hashed), draw("abcdefgh12345678", "x", parent=landed)
    )
    labels = labelled(secret(password="abcdefgh12345678"), found)
    assert labels["sum"] == labels["x"]


def test_of_two_equal_evaluations_the_one_of_the_same_chart_is_joined() -> None:
    def call(text: str, alias: str, site: str) -> Draw:
        enclosing = Enclosing(name="password", scalars="{}", text=text)
        root = f"sample/charts/{alias}/templates/a.yaml"
        return draw(text, f"{alias}-{site}", parent=enclosing, root=root)

    one, two = call("abcdefgh12345678", "one", "x"), call("abcdefgh87654321", "two", "x")
    hashed = call("zyxwvuts87654321", "two", "sum")
    output = secret(a="abcdefgh12345678", b="abcdefgh87654321")
    labels = labelled(output, records(one, two, hashed))
    assert labels["two-sum"] == labels["two-x"] != labels["one-x"]


def test_two_evaluations_that_land_stay_independent() -> None:
    calls = [
        Enclosing(name="password", scalars="{}", text=text)
        for text in ("abcdefgh12345678", "abcdefgh87654321")
    ]
    found = records(*(draw(call.text, f"x{i}", parent=call) for i, call in enumerate(calls)))
    labels = labelled(secret(a="abcdefgh12345678", b="abcdefgh87654321"), found)
    assert labels["x0"] != labels["x1"]


def test_an_argument_of_a_later_draw_is_named_by_that() -> None:
    first = draw("zyxwvuts87654321", "first")
    later = draw("abcdefgh12345678", "later", given=("zyxwvuts87654321",))
    labels = labelled(secret(password="abcdefgh12345678"), records(first, later))
    assert "input" in labels["first"].parts
    assert labels["first"].parts[:6] == labels["later"].parts[:6]


def test_a_drawn_part_of_a_name_is_no_part_of_an_identity() -> None:
    output = secret(password="abcdefgh12345678").replace("name: db", "name: db-qwertz")
    labels = labelled(output, records(draw("qwertz", "name"), draw("abcdefgh12345678", "x")))
    assert labels["x"].parts[4] == "db-*"


def test_what_lands_nowhere_is_named_by_its_site() -> None:
    assert labelled(secret(a="b"), records(draw("abcdefgh12345678", "x")))["x"].parts[:2] == (
        "site",
        f"{ROOT}/x",
    )


def test_custom_resource_definitions_are_not_searched() -> None:
    output = "---\n# Source: sample/crds/a.yaml\nkind: X\nmetadata: {name: a}\na: abcdefgh12345678\n"
    labels = labelled(output, records(draw("abcdefgh12345678", "x")))
    assert labels["x"].parts[0] == "site"
    moved = output.replace("sample/crds/", "sample/templates/crds/")
    assert labelled(moved, records(draw("abcdefgh12345678", "x")))["x"].parts[0] == "landing"
