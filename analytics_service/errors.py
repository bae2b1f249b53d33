"""All exceptions of the service. Their messages say what to do."""


class AnalyticsError(Exception):
    """Base of all expected errors. The message is for users."""

    exit_code = 1
    """Exit code of a command. 2 if the user can correct the call, a setting or a file."""


class SettingError(AnalyticsError):
    """A setting is unknown, malformed or not usable here; the message names it."""

    exit_code = 2


class StoreUnavailable(AnalyticsError):
    """ClickHouse does not answer now. A later retry may succeed."""


class QuorumPending(StoreUnavailable):
    """A server waits for other replicas. The statement may succeed in a moment."""


class Busy(StoreUnavailable):
    """The deadline passed before a request got a query slot or its query ended."""

    def __init__(self, message: str = "The service is busy. Try again in a few seconds.") -> None:
        super().__init__(message)


class BeingCorrected(Busy):
    """The deadline passed while a correction held back the history that a request must read."""

    def __init__(self) -> None:
        super().__init__("History is being corrected or filled in, which may take minutes. Try again later.")


class DiskFull(StoreUnavailable):
    """The disk of ClickHouse is full."""

    def __init__(self, operation: str) -> None:
        super().__init__(f"The disk of ClickHouse is full ({operation}). Free space on it.")


class StoreFailure(AnalyticsError):
    """ClickHouse refused a statement; a retry does not help. The message is for logs only."""


class AccessDenied(StoreFailure):
    """ClickHouse refuses the user or the password."""

    exit_code = 2


class SchemaError(AnalyticsError):
    """The schema in ClickHouse is of another version. `reason` is ClickHouse's message, for logs only."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class OtherShards(SchemaError):
    """The shards of the cluster differ from those that the store records."""


class NoSnapshot(AnalyticsError):
    """A dataset has no complete snapshot yet."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"There is no complete snapshot of {dataset} yet. A scheduler takes the first snapshot; imported history "
            "has no snapshots."
        )


class Superseded(AnalyticsError):
    """The store has moved past the requested state. A retry with the newest state may succeed."""


class Lost(AnalyticsError):
    """The store has lost rows that an answer needs; the message says which."""


class NotReady(AnalyticsError):
    """The service is not ready for requests; the message says what is missing."""


class EntityNotFound(AnalyticsError):
    """A well-formed id names nothing."""


class ParameterInvalid(AnalyticsError):
    """A parameter is well formed but cannot be used here; the message says why."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class SourceError(AnalyticsError):
    """A source could not provide a snapshot."""


class OutOfRange(AnalyticsError):
    """The store cannot hold a value; the message says what is allowed."""


class UserError(AnalyticsError):
    """A command cannot be carried out as given. Nothing has been written; the message says what to do instead."""

    exit_code = 2


class SourceMismatch(AnalyticsError):
    """Data of a source must not join the store's data. Nothing has been written; the message says what to do."""

    exit_code = 2


class CorrectionInProgress(AnalyticsError):
    """Another correction is running. Nothing has been written; the message names the other command."""

    exit_code = 2


class WriteLockLost(AnalyticsError):
    """A correction lost the write lock: it paused for too long, or another correction took the lock between two of its
    steps. Another process completes what was announced."""


class OperationFailed(AnalyticsError):
    """A backup, export or restore failed. It left no file and did not change the store."""


class ProcessError(AnalyticsError):
    """A child process of the service, such as the embedded ClickHouse, could not be started or kept running."""
