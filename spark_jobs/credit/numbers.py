"""The numbers that credit is computed with: whole ones, so that every part of adloom computes the same."""

from typing import Final

DECAY_STEPS: Final = 4096
"""Into how many steps ``time_decay`` divides a half-life: within one, the weight of a touch is the same."""
DECAY_BITS: Final = 32
"""The weight of the youngest touch in ``time_decay`` is 2 to this power; after more half-lives a touch has none."""
WHOLE_PPM: Final = 1_000_000
"""The sum of the shares of a conversion's touches, in parts per million."""
