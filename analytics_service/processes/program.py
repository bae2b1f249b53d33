"""The interface of a supervised program: how to launch it, check that it is ready and alive, stop it and explain its
end."""

import signal
from abc import ABC, abstractmethod

from analytics_service.errors import AnalyticsError, ProcessError
from analytics_service.processes.child import Child


class Program(ABC):
    """A program that runs as a child process. The defaults suit programs that stop on SIGTERM and log where we do."""

    # Follows "The" in messages.
    name: str
    # Seconds from the request to stop until the child and its whole session are killed.
    grace: float
    # Seconds from launch until a child that is not ready is killed.
    ready_seconds = 60.0
    # Consecutive pings, a second apart, that a running child may miss until it is killed; None means no pings.
    silent_seconds: int | None = None
    # Seconds that a child must run before the program counts as working. From then on it is restarted without limit.
    trial_seconds = 0.0
    # The end of a message about a failure.
    where_logged = "See what it logged above."
    # Exit codes after which a restart would not help.
    hopeless: frozenset[int] = frozenset()
    # Raised, with the reason, when the program cannot be kept running.
    error: type[AnalyticsError] = ProcessError

    @abstractmethod
    def launch(self) -> Child:
        """Start a child process. OSError when the system refuses."""

    def is_ready(self) -> bool:
        """Whether the running child has finished starting."""
        return True

    def obstacle(self) -> str:
        """The reason why a ready child must not take over from a working child; empty when it may."""
        return ""

    def announce(self) -> bool:
        """Announce that a child has become ready; False when that must be tried again."""
        return True

    def is_answering(self) -> bool:
        """Whether the running child has answered since the last call. Returns at once."""
        return True

    def fault(self) -> str:
        """Why the running child has to be restarted although it answers, as the rest of a sentence; empty if not."""
        return ""

    def adapt(self) -> bool:
        """Remove the cause of the last failed start; False when there is nothing to remove.

        OSError or the program's error when that fails.
        """
        return False

    def ask_to_stop(self, child: Child) -> None:
        """Begin an orderly stop."""
        child.terminate()

    def release(self) -> None:  # noqa: B027 - most programs have nothing to close
        """Close the resources of the last child, which has ended."""

    def explain(self, code: int) -> str:
        """The reason why the child ended, in full sentences, from its exit code."""
        return f"The {self.name} {ending(code)}. {self.where_logged}"


def ending(code: int) -> str:
    """The end of a process, as the rest of a sentence."""
    if code == -signal.SIGKILL:
        return "was killed by signal 9, as the system does when memory runs out"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
