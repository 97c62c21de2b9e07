"""Prepare names for the API reference: each package's exports, fields as signatures, docstrings as
Markdown.

mkdocstrings reads the source without importing it. It treats ``from x import Name as Name`` as an
export, like type checkers.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):`~?([^`]+)`")
WITHOUT_FIELDS = {"Protocol", "TypedDict", "Enum", "StrEnum", "Generic"}


class ExportedNames(griffe.Extension):
    """Show the exported names of a package, without special methods."""

    def on_alias_instance(self, *, node: Any, alias: griffe.Alias, **kwargs: Any) -> None:
        """Mark an imported name as public if it is imported under its own name."""
        if isinstance(node, ast.ImportFrom):
            alias.public = any(name.name == name.asname == alias.name for name in node.names)

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Hide special methods, and turn the roles in a docstring into code."""
        if obj.name.startswith("__") and not obj.is_module:
            obj.public = False
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Give a class with fields (a dataclass, a Struct) the signature of its constructor."""
        bases = {str(base).partition("[")[0].rpartition(".")[2] for base in cls.bases}
        fields = [
            attribute
            for attribute in cls.attributes.values()
            if attribute.annotation is not None
            and "ClassVar" not in str(attribute.annotation)
            and "property" not in attribute.labels
        ]
        if "__init__" in cls.members or not fields or bases & WITHOUT_FIELDS:
            return
        parameters = [
            griffe.Parameter(
                field.name,
                annotation=field.annotation,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=field.value,
            )
            for field in fields
        ]
        this = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        cls.set_member(
            "__init__", griffe.Function("__init__", parameters=griffe.Parameters(this, *parameters))
        )
