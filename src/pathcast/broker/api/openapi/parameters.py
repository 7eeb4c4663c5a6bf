"""Parameters of requests: an endpoint reads them with the same object that describes them.

    WAIT: Final = WholeNumber("wait", "Seconds to wait for a delivery.", 0, 60)
    wait = WAIT.of(request)

A parameter that is malformed is answered with 400.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from starlette.requests import Request

from ...tokens.scopes import NAME
from ..problems import ProblemError
from ..request_bodies import whole_number

_SHOWN: Final = 40  # characters of a malformed value that an answer repeats


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation: its name, and what it means."""

    name: str
    text: str
    place: ClassVar[str] = "query"

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        return {"type": "string"}

    def is_in(self, request: Request) -> bool:
        """Whether a request gives it in its query."""
        return self.name in request.query_params

    def shown(self) -> dict[str, Any]:
        """The parameter in OpenAPI."""
        found = {"name": self.name, "in": self.place, "description": self.text, "schema": self.schema()}
        return {**found, "required": True} if self.place == "path" else found


@dataclass(frozen=True, slots=True)
class Text(Parameter):
    """A parameter of the query that is any text."""

    def of(self, request: Request) -> str | None:
        """Its value in a request; None without it."""
        return request.query_params.get(self.name)


@dataclass(frozen=True, slots=True)
class WholeNumber(Parameter):
    """A parameter of the query that is a number from 0 to `most`; without a default, the endpoint chooses one."""

    default: int | None
    most: int

    def of(self, request: Request, default: int = 0) -> int:
        """Its value in a request."""
        return whole_number(request, self.name, default if self.default is None else self.default, self.most)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        bounds = {"type": "integer", "minimum": 0, "maximum": self.most}
        return bounds if self.default is None else {**bounds, "default": self.default}


@dataclass(frozen=True, slots=True)
class Choice(Parameter):
    """A parameter of the query with a few values; the first is the default."""

    choices: tuple[str, ...]

    def of(self, request: Request) -> str:
        """Its value in a request."""
        text = request.query_params.get(self.name, self.choices[0])
        if text not in self.choices:
            raise ProblemError(
                400, f"{self.name} must be {' or '.join(map(repr, sorted(self.choices)))}, got {text[:_SHOWN]!r}"
            )
        return text

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        return {"type": "string", "enum": list(self.choices), "default": self.choices[0]}


@dataclass(frozen=True, slots=True)
class Header(Parameter):
    """A header of the request."""

    place: ClassVar[str] = "header"

    def of(self, request: Request) -> str | None:
        """Its value in a request; None without it."""
        return request.headers.get(self.name)


@dataclass(frozen=True, slots=True)
class PathName(Parameter):
    """A name in the path."""

    place: ClassVar[str] = "path"

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        return {"type": "string", "pattern": f"^{NAME.pattern}$"}


@dataclass(frozen=True, slots=True)
class Sequence(Parameter):
    """A sequence of the log in the path."""

    place: ClassVar[str] = "path"

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its values."""
        return {"type": "integer", "minimum": 0}


# Parameters of paths mean the same in all of them.
_IN_PATHS: Final = (
    PathName("feed", "A feed: letters, digits and _ . ~ @ -, up to 128 characters."),
    PathName("id", "A subscription of the token's tenant."),
    PathName("name", "A subscriber of the token's tenant."),
    PathName("tenant", "A tenant."),
    PathName("upload", "The id of an upload."),
    PathName("lease", "The id of a read lease."),
    Sequence("sequence", "The place of a document in the log."),
)
IN_PATHS: Final = {parameter.name: parameter for parameter in _IN_PATHS}
