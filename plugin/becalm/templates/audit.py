"""Finding, without rendering, every call that is not hermetic."""

from __future__ import annotations

from becalm.templates.functions import functions
from becalm.templates.syntax import parse, pipelines, walk
from becalm.templates.tokens import TemplateSyntaxError


def calls(text: str) -> list[tuple[int, str]]:
    """Line and function of every such call, in order; none for a text that does not parse."""
    try:
        statements = parse(text)
    except TemplateSyntaxError:
        return []
    found = [
        (text.count("\n", 0, operand.start) + 1, operand.function)
        for statement in walk(statements)
        for pipeline in pipelines(statement)
        for _, _, operand in pipeline.operands()
        if operand.function in functions()
    ]
    return sorted(found)
