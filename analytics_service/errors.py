"""All exceptions of the service. Their messages say what to do."""


class AnalyticsError(Exception):
    """Base of all errors raised on purpose. The message may be shown on the terminal."""

    exit_code = 1
    """That of a command. It is 2 for what the user can correct: the call, a setting or a file."""


class SettingError(AnalyticsError):
    """A setting is unknown, malformed or of no use here; the message names it."""

    exit_code = 2


class StoreUnavailable(AnalyticsError):
    """ClickHouse cannot be reached or cannot answer now. Retrying later may help."""


class QuorumPending(StoreUnavailable):
    """A server waits for other replicas. In a moment the same statement may succeed."""


class Busy(StoreUnavailable):
    """The store answers others, and a request's time is over before its turn has come, or has been long enough."""

    def __init__(self) -> None:
        super().__init__("The service is busy. Try again in a few seconds.")


class BeingCorrected(Busy):
    """A request's time is over while history that it must read is being corrected."""

    def __init__(self) -> None:
        AnalyticsError.__init__(
            self, "History is being corrected, which may take minutes. Try again when that is done."
        )


class DiskFull(StoreUnavailable):
    """ClickHouse has no space for what it was to write."""

    def __init__(self, operation: str) -> None:
        super().__init__(f"The disk of ClickHouse is full ({operation}). Free space on it.")


class StoreFailure(AnalyticsError):
    """ClickHouse refused a statement. Retrying does not help. The message is for logs only."""


class AccessDenied(StoreFailure):
    """ClickHouse refuses the user or the password."""

    exit_code = 2


class SchemaError(AnalyticsError):
    """The schema in ClickHouse is not that of this version. `reason` is ClickHouse's own, for logs only."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class OtherShards(SchemaError):
    """The shards of the cluster are not those that the store was made for."""


class NoSnapshot(AnalyticsError):
    """A dataset has no complete snapshot yet."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"No snapshot of {dataset} has been completed yet. It comes with the first run of a scheduler; a store "
            "that holds imported history only has none."
        )


class Superseded(AnalyticsError):
    """The store has moved past the requested state. Retrying with the newest state may succeed."""


class Lost(AnalyticsError):
    """The store has lost rows that an answer needs; the message says which."""


class NotReady(AnalyticsError):
    """The service is not ready for requests; the message says what is missing."""


class EntityNotFound(AnalyticsError):
    """There is nothing with a well-formed id."""


class ParameterInvalid(AnalyticsError):
    """The request parameter `parameter` is well formed but cannot be used here; the message says why."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class SourceError(AnalyticsError):
    """A source failed to provide a snapshot."""


class OutOfRange(AnalyticsError):
    """A value that the store cannot hold; the message says what it must be."""


class UserError(AnalyticsError):
    """What was asked for cannot be done as it is, and nothing has been written; the message says what to do instead."""

    exit_code = 2


class SourceMismatch(AnalyticsError):
    """Data of a source must not join the data of the store. Nothing has been written; the message says what to do."""

    exit_code = 2


class CorrectionInProgress(AnalyticsError):
    """Another correction is at work; nothing has been written. The message names its command."""

    exit_code = 2


class WriteLockLost(AnalyticsError):
    """A correction has lost the write lock, because it stood still for too long, and others complete what it announced;
    or a command of several corrections has left it to another between two of them."""


class OperationFailed(AnalyticsError):
    """A backup or an export cannot be written or restored now; no file is left, and no store was changed."""


class EmbeddedServerError(AnalyticsError):
    """The embedded ClickHouse could not be started or kept running."""


class ProcessError(AnalyticsError):
    """A child process of the service could not be started or kept running."""
