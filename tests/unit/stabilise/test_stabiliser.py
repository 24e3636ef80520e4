"""The loop of survey, settle and replay, with a renderer that only pretends."""

from __future__ import annotations

from becalm.derive.cache import Cache
from becalm.derive.deriver import Deriver
from becalm.derive.labels import Label
from becalm.derive.windows import Windows
from becalm.stabilise.epochs import Epochs
from becalm.stabilise.records import Draw
from becalm.stabilise.settle import Named
from becalm.stabilise.stabiliser import Attempt, Stabiliser
from becalm.templates.files import TemplateFile

DERIVER = Deriver(bytes(range(32)), at=0, windows=Windows(), cache=Cache(None))


def stabiliser(text: str) -> Stabiliser:
    file = TemplateFile(key="a", name="a.yaml", text=text)
    return Stabiliser(
        [file], {}, deriver=DERIVER, namespace="n", instant="2024-01-01T00:00:00Z", epochs=Epochs()
    )


def draw(function: str, arguments: str, given: tuple[str, ...] = ()) -> Draw:
    return Draw(
        file="a", root="r", key="k", name="k", site=0, function=function, arguments=arguments, given=given,
        texts=("provisional",), known=False, parent=None,
    )  # fmt: skip


def test_an_error_of_helm_is_told_without_derived_values() -> None:
    """A template may put a value into its error, and stderr reaches Argo CD's UI."""
    tested = stabiliser("{{ fail (randAlphaNum 16) }}")
    tested.put([Named(draw=draw("randAlphaNum", "[16]"), label=Label(("site", "k")), places=[])])
    (entry,) = tested.table["a"]["r"]["k"].values()
    value = entry["v"]
    done = tested.run(lambda _changed, _runtime: Attempt(output="", error=f"Error: bad {value}, no {value}"))
    assert done.output is None
    assert done.error == "Error: bad ***, no ***"


def test_no_line_of_a_key_is_told() -> None:
    tested = stabiliser('{{ genPrivateKey "ecdsa" | fail }}')
    tested.put([Named(draw=draw("genPrivateKey", '["ecdsa"]'), label=Label(("site", "k")), places=[])])
    (entry,) = tested.table["a"]["r"]["k"].values()
    lines = str(entry["v"]).splitlines()
    done = tested.run(
        lambda _changed, _runtime: Attempt(output="", error="\n".join(f"Error: {line}" for line in lines))
    )
    assert done.error is not None
    assert not any(line in done.error for line in lines[1:-1])
    assert done.error.count("***") == len(lines) - 2
