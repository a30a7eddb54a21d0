"""For the site: examples in docstrings become code blocks."""

from __future__ import annotations

import re

import griffe

_EXAMPLE = re.compile(r"((?:^ *>>> .*\n?)(?:^(?! *$).*\n?)*)", re.M)


class Examples(griffe.Extension):
    def on_object(self, *, obj, **_) -> None:
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = _EXAMPLE.sub(lambda m: f"```pycon\n{m[1].rstrip()}\n```\n", obj.docstring.value)
