"""Base class of paths that show current state."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from analytics_service.http.envelope import success
from analytics_service.present.shapes import Flags, Node, Scope
from analytics_service.resources.snapshots import SnapshotPath
from analytics_service.state.view import View

_SCOPES: WeakKeyDictionary[View, dict[Flags, Scope]] = WeakKeyDictionary()


class Current(SnapshotPath):
    """A path that shows a record of the current state in its shape."""

    shape: Node
    # Assets are described with the prices.
    describing = ("prices",)

    @abstractmethod
    def record(self, view: View, given: Mapping[str, Any]) -> Any:
        """The record. EntityNotFound if a parameter names nothing."""

    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The record in the path's shape."""
        flags = flags_of(given)
        # Markets determine the prices of receipt tokens. A path that shows no markets does without their snapshot.
        scope = scope_of(view, flags) if "markets" in self.families else Scope(flags, view.assets, view.quoted)
        data = self.shape.render(self.record(view, given), scope)
        return success(data, count=len(data) if isinstance(data, list) else None)


def scope_of(view: View, flags: Flags) -> Scope:
    """What a rendering with these variants sees of the assets and their prices; kept as long as the view is."""
    scopes = _SCOPES.setdefault(view, {})
    if flags not in scopes:
        scopes[flags] = Scope(flags, view.assets, view.prices)
    return scopes[flags]


def flags_of(given: Mapping[str, Any]) -> Flags:
    """The variants and the generation of names that a request asks for."""
    return Flags(
        text=given.get("with_text", False),
        value=given.get("with_value", False),
        percent=given.get("with_percent", False),
        shape=given.get("shape", "newer"),
    )
