"""The loop of survey, settle and replay, with a renderer that only pretends."""

from __future__ import annotations

from becalm.derive.labels import Label
from becalm.stabilise.records import Draw
from becalm.stabilise.stabiliser import Attempt, Stabiliser
from becalm.templates.files import TemplateFile

KEY = bytes(range(32))


def test_an_error_of_helm_is_told_without_derived_values() -> None:
    """A template may put a value into its error, and stderr reaches Argo CD's UI."""
    file = TemplateFile(key="a", name="a.yaml", text="{{ fail (randAlphaNum 16) }}")
    stabiliser = Stabiliser([file], {}, key=KEY, namespace="n", instant="2024-01-01T00:00:00Z")
    draw = Draw(
        file="a", root="r", key="k", name="k", site=0, function="randAlphaNum", arguments="[16]", given="[16]",
        value="provisional", known=False, parent=None,
    )  # fmt: skip
    stabiliser.put(draw, Label(("site", "k")))
    (value,) = stabiliser.table["a"]["r"]["k"].values()
    done = stabiliser.run(
        lambda _changed, _runtime: Attempt(output="", error=f"Error: bad {value}, no {value}")
    )
    assert done.output is None
    assert done.error == "Error: bad ***, no ***"
