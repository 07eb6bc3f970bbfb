"""Readings as the text that Prometheus reads, OpenMetrics for who asks for it; and what the process says of itself.

The package for it is loaded with this module: it is imported only where metrics are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .catalog import METRICS
from .tallies import Counted, Reading, Spread

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
_FAMILIES: dict[str, type[_Family]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class Exposition:
    """Writes readings, with those of the process beside them."""

    def __init__(self) -> None:
        self._process = CollectorRegistry(auto_describe=False)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)

    def write(self, readings: Iterable[Reading], accept: str) -> tuple[str, bytes]:
        """Content type and body for a scraper whose Accept header is ``accept``. It may run in any thread."""
        encode, kind = choose_encoder(accept)
        return kind, encode(_Everything(readings, self._process))


class _Everything(Collector):
    """Readings that were taken already, and the process's."""

    def __init__(self, readings: Iterable[Reading], process: Collector) -> None:
        self._readings = readings
        self._process = process

    def collect(self) -> Iterator[Metric]:
        families: dict[str, _Family] = {}
        for one in self._readings:
            family = families.get(one.name)
            if family is None:
                row = METRICS[one.name]
                family = families[one.name] = _FAMILIES[row.kind](one.name, row.text, labels=row.labels)
            _add(family, one)
        yield from families.values()
        yield from self._process.collect()


def _add(family: _Family, one: Reading) -> None:
    if isinstance(one, Spread) and isinstance(family, HistogramMetricFamily):
        bounds = [*map(str, one.bounds), "+Inf"]
        family.add_metric(one.labels, list(zip(bounds, accumulate(one.counts), strict=True)), one.total)
    elif isinstance(one, Counted) and not isinstance(family, HistogramMetricFamily):
        family.add_metric(one.labels, one.value)
