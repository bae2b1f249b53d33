"""Base classes of paths that show the state of now, or of a moment of the past (rule 8.12)."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import falcon

from analytics_service.errors import ParameterInvalid
from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.times import Day, Edge
from analytics_service.market.instants import instant, shown
from analytics_service.present.shapes import Flags, Node, Scope
from analytics_service.resources.snapshots import LATE, SnapshotPath
from analytics_service.state.moments import Moment
from analytics_service.state.view import View
from analytics_service.store.assets import SHOWN_WITH
from analytics_service.store.ledger import PastHead

# Today's date is always in the future.
_WHERE_TODAY = ". A date means its last second; give a time of day, or leave `at` out for the newest state"
_SCOPES: WeakKeyDictionary[View, dict[Flags, Scope]] = WeakKeyDictionary()


class StatePath(SnapshotPath):
    """A path that shows the newest state, or that of the moment `at`."""

    describes_assets = True
    """Whether the answer describes assets. If not, it needs no snapshot of prices."""
    common = params.MOMENT

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """All parameters, the `moment` that is asked for (None for now), and the words of the request.

        ParameterInvalid for a moment that is yet to come.
        """
        given = super().given(req, path)
        return {**given, "moment": self._moment(given), "words": req.query_string}

    def question(self, given: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The request's query with the second that `at` means, if that depends on now."""
        is_moving = given["at"] is not None and given["at"].is_relative
        # No client can send this character in a query.
        return (f"{given['words']}#{given['moment'].at}" if is_moving else None), is_moving

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Assets are described with the prices."""
        return (SHOWN_WITH,) if self.describes_assets else ()

    def view(self, given: Mapping[str, Any]) -> View:
        """The view of now, or that of the moment. EntityNotFound where a family that the answer is made from has no
        snapshot yet, even if this answer would not read it."""
        if given["moment"] is None:
            return super().view(given)
        families = dict.fromkeys((*self.families, SHOWN_WITH, *self.valued_by))
        view = self._shared.views.past(given["moment"], families)
        self.as_of(None, view, given)
        return view

    def closes_at(self, view: View, given: Mapping[str, Any]) -> int | None:
        """Some minutes after the moment, if later snapshots have settled it in all families, including the one that
        describes assets."""
        if given["moment"] is None:
            return None
        at = given["moment"].at
        heads = view.heads_of((*self.made_from(view, given), *self.described_by(view, given)))
        return at + LATE if all(isinstance(head, PastHead) and head.awaits_jobs_only(at) for head in heads) else None

    def _moment(self, given: Mapping[str, Any]) -> Moment | None:
        if given["at"] is None:
            return None
        now = self._shared.schedule.now()
        at = given["at"].second(given["tz"] or self._shared.zone, now, Edge.AT)
        if at > now:
            message = f"{shown(instant(at))} is in the future; it is now {shown(instant(now))}"
            raise ParameterInvalid("at", message + (_WHERE_TODAY if isinstance(given["at"], Day) else ""))
        return Moment(at, late=now < at + LATE)


class Current(StatePath):
    """A path that shows a record of the state in its shape."""

    shape: Node

    def body(self, record: Any, view: View, given: Mapping[str, Any]) -> bytes:
        """The record in the path's shape."""
        flags = flags_of(given)
        if not self.describes_assets:
            scope = Scope(flags)
        # Markets determine the prices of receipt tokens. Paths that have none do without a snapshot of markets.
        elif "markets" in self.made_from(view, given):
            scope = scope_of(view, flags)
        else:
            scope = Scope(flags, view.assets, view.quoted if flags.value else {})
        data = self.shape.render(record, scope)
        return success(data, count=len(data) if isinstance(data, list) else None)


def scope_of(view: View, flags: Flags) -> Scope:
    """The rendering context for these variants: assets, and their prices if values are shown. Kept as long as the view
    is."""
    scopes = _SCOPES.setdefault(view, {})
    if flags not in scopes:
        scopes[flags] = Scope(flags, view.assets, view.prices if flags.value else {})
    return scopes[flags]


def flags_of(given: Mapping[str, Any]) -> Flags:
    """The variants and the generation of names that a request asks for."""
    return Flags(
        text=given.get("with_text", False),
        value=given.get("with_value", False),
        percent=given.get("with_percent", False),
        shape=given.get("shape", "newer"),
    )
