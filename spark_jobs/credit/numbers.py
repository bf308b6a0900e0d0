"""The numbers that credit is computed with: integers, so that every part of adloom gets equal results."""

from typing import Final

DECAY_STEPS: Final = 4096
"""The steps into which ``time_decay`` divides a half-life; the weight of a touch is constant within one."""
DECAY_BITS: Final = 32
"""The weight of the youngest touch in ``time_decay`` is 2 to this power; after more half-lives a touch has none."""
WHOLE_PPM: Final = 1_000_000
"""The sum of the parts per million of a conversion's touches."""
