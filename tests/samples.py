"""Samples in Prometheus' text format."""


def samples(text: str) -> dict[str, float]:
    """The value of each sample, by its name with its labels."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
