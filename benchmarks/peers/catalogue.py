"""All jobs, in the order in which they are run."""

from __future__ import annotations

from benchmarks.peers import clusters, exact, features, kernels, learners, start
from benchmarks.peers.data import Scale
from benchmarks.peers.job import Job


def jobs(scale: Scale) -> list[Job]:
    """All jobs of this scale; the quick run has some of each kind."""
    families = (kernels, features, learners, clusters, exact, start)
    found = [job for family in families for job in family.jobs(scale)]
    return [job for job in found if job.brief] if scale.name == "quick" else found
