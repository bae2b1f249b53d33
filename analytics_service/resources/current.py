"""Base classes of paths that show the current state, or the state at a past moment (rule 8.12)."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import falcon

from analytics_service.errors import ParameterInvalid
from analytics_service.history.times import Day, Edge
from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.market.instants import instant, shown
from analytics_service.present.shapes import Flags, Node, Scope
from analytics_service.resources.snapshots import SETTLING_SECONDS, SnapshotPath
from analytics_service.state.moments import Moment
from analytics_service.state.view import View
from analytics_service.store.assets import ASSETS_FAMILY
from analytics_service.store.ledger import PastHead

# Today's date is always in the future.
_TODAY_HINT = ". A date means its last second; give a time of day, or leave `at` out for the newest state"
_SCOPES: WeakKeyDictionary[View, dict[Flags, Scope]] = WeakKeyDictionary()


class StatePath(SnapshotPath):
    """A path that shows the newest state, or the state at the moment `at`."""

    describes_assets = True
    """Whether the answer describes assets. If not, it needs no snapshot of prices."""
    common = params.MOMENT

    def parse(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """All parameters, the requested `moment` (None for now), and the `query_string` of the request.

        ParameterInvalid for a moment in the future.
        """
        arguments = super().parse(req, path)
        return {**arguments, "moment": self._moment(arguments), "query_string": req.query_string}

    def resolved_query(self, arguments: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The request's query with the second that `at` means, if that second depends on now."""
        is_moving = arguments["at"] is not None and arguments["at"].is_relative
        # No client can send this character in a query.
        return (f"{arguments['query_string']}#{arguments['moment'].at}" if is_moving else None), is_moving

    def described_by(self, view: View, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """The family of the definitions of assets, if the answer describes assets."""
        return (ASSETS_FAMILY,) if self.describes_assets else ()

    def view(self, arguments: Mapping[str, Any]) -> View:
        """The current view, or the view of the moment. EntityNotFound if a family that the answer is made from had no
        snapshot then, even if this answer would not read it."""
        if arguments["moment"] is None:
            return super().view(arguments)
        families = dict.fromkeys((*self.families, ASSETS_FAMILY, *self.valued_by))
        view = self._shared.views.past(arguments["moment"], families)
        self.as_of(None, view, arguments)
        return view

    def closes_at(self, view: View, arguments: Mapping[str, Any]) -> int | None:
        """Some minutes after the moment, if later snapshots have settled it in all families, including the family of
        the definitions of assets."""
        if arguments["moment"] is None:
            return None
        at = arguments["moment"].at
        heads = view.heads_of((*self.made_from(view, arguments), *self.described_by(view, arguments)))
        return (
            at + SETTLING_SECONDS
            if all(isinstance(head, PastHead) and head.awaits_jobs_only(at) for head in heads)
            else None
        )

    def _moment(self, arguments: Mapping[str, Any]) -> Moment | None:
        if arguments["at"] is None:
            return None
        now = self._shared.schedule.now()
        at = arguments["at"].second(arguments["tz"] or self._shared.zone, now, Edge.AT)
        if at > now:
            message = f"{shown(instant(at))} is in the future; it is now {shown(instant(now))}"
            raise ParameterInvalid("at", message + (_TODAY_HINT if isinstance(arguments["at"], Day) else ""))
        return Moment(at, late=now < at + SETTLING_SECONDS)


class Current(StatePath):
    """A path that shows a record of a view in its shape."""

    shape: Node

    def body(self, record: Any, view: View, arguments: Mapping[str, Any]) -> bytes:
        """The record in the path's shape."""
        flags = flags_of(arguments)
        if not self.describes_assets:
            scope = Scope(flags)
        # Markets determine the prices of receipt tokens. Paths without receipt tokens need no snapshot of markets.
        elif "markets" in self.made_from(view, arguments):
            scope = scope_of(view, flags)
        else:
            scope = Scope(flags, view.assets, view.quoted if flags.value else {})
        data = self.shape.render(record, scope)
        return success(data, count=len(data) if isinstance(data, list) else None)


def scope_of(view: View, flags: Flags) -> Scope:
    """The rendering context for these variants: assets, and prices if values are shown. It is cached with the view."""
    scopes = _SCOPES.setdefault(view, {})
    if flags not in scopes:
        scopes[flags] = Scope(flags, view.assets, view.prices if flags.value else {})
    return scopes[flags]


def flags_of(arguments: Mapping[str, Any]) -> Flags:
    """The variants and the generation of names that a request asks for."""
    return Flags(
        text=arguments.get("with_text", False),
        value=arguments.get("with_value", False),
        percent=arguments.get("with_percent", False),
        shape=arguments.get("shape", "newer"),
    )
