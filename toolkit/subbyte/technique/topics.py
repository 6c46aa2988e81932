"""Info records for a workload and a configuration of any family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput
from subbyte.families.base import Family, Plan
from subbyte.families.registry import family_of, topic_giving
from subbyte.families.topic import Record, Topic
from subbyte.kernel.choose import known_config
from subbyte.kernel.kernel import Kernel
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.coverage import four_bits_alone

if TYPE_CHECKING:
    from subbyte.spaces.configuration import Configuration


def explained(
    gives: type[Record],
    workload: ConvWorkload | str,
    config: Configuration | None = None,
    arch: Arch | str = "sm_90a",
    **options: Any,
) -> Record:
    """A record of type ``gives`` for a workload under a configuration, made by its family; ``options`` are those of the
    topic.

    Without a configuration, the first family with that topic is used, with its plain or best known configuration,
    whichever the topic prefers. Raises InvalidInput for unknown names and for a configuration that is rejected,
    Unsupported if the configuration's family has no such topic.
    """
    family, topic = topic_giving(gives, config)
    found, target = workload_named(workload), arch if isinstance(arch, Arch) else arch_named(arch)
    return shown(topic, planned(family, topic, found, config, target), **options)


def planned(
    family: Family, topic: Topic[Any], workload: ConvWorkload, config: Configuration | None, arch: Arch
) -> Plan:
    """The plan to show for a topic; it may turn out to be rejected. Raises Unsupported when none is given or known."""
    if config is None:
        config = family.plain
        # The plain configuration is meant for four bits: with other types it may have too few blocks for an
        # instruction.
        others = four_bits_alone(workload) is not None and family.check(family.plan(workload, config, arch))
        if not topic.plain or others:
            config = known_config(workload, arch, family)
    return family.plan(workload, config, arch)


def shown(topic: Topic[Record], plan: Plan, **options: Any) -> Record:
    """A topic's record of a plan."""
    return topic.record(plan, Kernel(plan).trace, **options) if topic.of == "run" else topic.record(plan, **options)


def shown_of_kernel(gives: type[Record], kernel: Kernel, **options: Any) -> Record:
    """A record of type ``gives`` for a kernel. Raises Unsupported if its family has no such topic."""
    _, topic = topic_giving(gives, kernel.config)
    return shown(topic, kernel.plan, **options)


def plan_of(workload: ConvWorkload | str, config: Configuration, arch: Arch | str = "sm_90a") -> Plan:
    """The plan of a configuration of any family. Raises InvalidInput with the reason if it is rejected."""
    family, found = family_of(config), workload_named(workload)
    plan = family.plan(found, config, arch if isinstance(arch, Arch) else arch_named(arch))
    if reason := family.check(plan):
        raise InvalidInput(f"{found.label} with {config.key} on {plan.arch.name} cannot be built: {reason}")
    return plan
