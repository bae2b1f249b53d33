"""What can go wrong, in the service's own words. Each message says what to do."""


class AnalyticsError(Exception):
    """Base of all errors raised on purpose. The message may be shown to the person at the terminal."""


class SettingError(AnalyticsError):
    """A setting is unknown or malformed; the message names it."""


class StoreUnavailable(AnalyticsError):
    """ClickHouse cannot be reached or cannot answer now. Trying again later may help."""


class StoreFailure(AnalyticsError):
    """ClickHouse refused what was sent. Trying again will not help; the message is for logs only."""


class SchemaError(AnalyticsError):
    """The schema in ClickHouse is not the one this version needs."""


class NoSnapshot(AnalyticsError):
    """Nothing has been committed yet for a family of data."""


class Superseded(AnalyticsError):
    """What was to be read as of a state of the store cannot be any more; as of the newest one it can."""


class NotReady(AnalyticsError):
    """The service should get no requests yet; the message says what is missing."""


class EntityNotFound(AnalyticsError):
    """A well-formed id names nothing."""


class ParameterInvalid(AnalyticsError):
    """A request parameter is well formed but not allowed in combination; `parameter` names it."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class SourceError(AnalyticsError):
    """A source could not give a snapshot."""


class SnapshotRefused(AnalyticsError):
    """A snapshot of that instant cannot be taken, now or later; the message says why."""


class ImportRefused(AnalyticsError):
    """A file of history cannot be imported as it is; nothing of it was written."""


class EmbeddedServerError(AnalyticsError):
    """The embedded ClickHouse could not be started or kept running."""


class ProcessError(AnalyticsError):
    """A child process of the service could not be started or kept running."""
