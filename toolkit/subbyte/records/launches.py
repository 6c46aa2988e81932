"""The configuration of a batch that is computed by more than one launch: which kernel computes how many images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.families.registry import config_from_key
from subbyte.spaces.configuration import Configuration

LAUNCHES = "launches"
"""The only field of such a configuration in a record: its key."""


@dataclass(frozen=True)
class SplitLaunches(Configuration):
    """The configurations of kernels that compute a batch together; of no family, and with no knobs of its own."""

    images: tuple[int, ...]
    configs: tuple[Configuration, ...]

    def __post_init__(self) -> None:
        """There are no knobs to check."""

    @staticmethod
    def of_key(key: str) -> SplitLaunches:
        """The configuration whose :attr:`key` is given. Raises InvalidInput for another text."""
        images, configs = [], []
        for part in str(key).split("+"):
            count, _, config = part.partition(":")
            if not (count.isascii() and count.isdigit() and int(count)) or not config:
                raise InvalidInput(f"{key!r:.200} names no kernels with their images, such as 256:KEY+16:KEY")
            images.append(int(count))
            configs.append(config_from_key(config))
        return SplitLaunches(tuple(images), tuple(configs))

    @property
    def key(self) -> str:
        """For example ``256:wgp-tw7-tr2+16:wgp-tw8-tr1``."""
        return "+".join(f"{n}:{one.key}" for n, one in zip(self.images, self.configs, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The key, which contains everything."""
        return {LAUNCHES: self.key}
