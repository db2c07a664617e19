"""What can be set: how a token is chosen, by which rule a draft is judged, and each model-free source's own settings.

Without numpy, since the window needs these names before it is up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

LONGEST_GRAM = 256
LONGEST_DRAFT = 1024
"""Bounds of the settings: far beyond use, so that a slip of the pen is told and not obeyed."""
LONGEST_CACHED_GRAM = 8
"""The longest n-gram that is counted: each place of a text adds one of every size up to there."""
MOST_OCCURRENCES = 32
"""The newest occurrences of a key that are looked at: a bound on the time of a proposal in a text that repeats."""


class Rule(Enum):
    COUPLED = "coupled"
    REJECTION = "rejection"


def in_range(name: str, value: float, low: float, high: float) -> None:
    """Raises ValueError for a setting out of its range."""
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low} and {high}, not {value}")


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How a token is chosen. The order is llama.cpp's: bias, penalties, DRY, top-k, top-p, min-p, temperature.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0, `repeat_penalty` 1 and the other penalties at 0 switch
    a filter off. Penalties look at the last `penalty_window` tokens, the prompt's included.

    `dry_multiplier` 0 switches DRY off; it looks at the last `dry_penalty_last_n` tokens, at all of them for -1, and
    `dry_breakers` are sequences of token ids over which no repetition reaches. `logit_bias` are pairs of a token id
    and what is added to its score; -inf bans it. Raises ValueError for values out of range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 64
    seed: int = 0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_breakers: tuple[tuple[int, ...], ...] = ()
    logit_bias: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        bounds: tuple[tuple[str, float, float], ...] = (
            ("temperature", 0.0, 100.0),
            ("top_k", 0, math.inf),
            ("top_p", 0.0, 1.0),
            ("min_p", 0.0, 1.0),
            ("repeat_penalty", 1e-3, 1e3),
            ("frequency_penalty", -100.0, 100.0),
            ("presence_penalty", -100.0, 100.0),
            ("penalty_window", 0, math.inf),
            ("seed", 0, 2**64 - 1),
            ("dry_multiplier", 0.0, 1000.0),
            ("dry_base", 1.0, 100.0),
            ("dry_allowed_length", 1, math.inf),
            ("dry_penalty_last_n", -1, math.inf),
        )
        for name, low, high in bounds:
            in_range(name, getattr(self, name), low, high)
        if not all(self.dry_breakers):
            raise ValueError("dry_breakers must not hold an empty sequence")
        for token, bias in self.logit_bias:
            if token < 0 or not bias < math.inf:
                raise ValueError(f"logit_bias must add a number or -inf to a token id, not {bias} to {token}")

    @property
    def penalises(self) -> bool:
        return self.penalty_window > 0 and (
            self.repeat_penalty != 1.0 or self.frequency_penalty != 0.0 or self.presence_penalty != 0.0
        )

    @property
    def repels(self) -> bool:
        """Whether DRY is on."""
        return self.dry_multiplier > 0.0 and self.dry_penalty_last_n != 0

    @property
    def adjusts(self) -> bool:
        """Whether scores are changed before the filters."""
        return bool(self.logit_bias) or self.penalises or self.repels


@dataclass(frozen=True, slots=True)
class PromptLookupSettings:
    """`max_ngram_size` down to `min_ngram_size` tokens are looked up, at most `num_pred_tokens` drafted.

    Raises ValueError for values out of range.
    """

    max_ngram_size: int = 3
    min_ngram_size: int = 2
    num_pred_tokens: int = 64

    def __post_init__(self) -> None:
        in_range("max_ngram_size", self.max_ngram_size, 1, LONGEST_GRAM)
        in_range("min_ngram_size", self.min_ngram_size, 1, self.max_ngram_size)
        in_range("num_pred_tokens", self.num_pred_tokens, 1, LONGEST_DRAFT)


@dataclass(frozen=True, slots=True)
class NgramSimpleSettings:
    """The last `size_n` tokens are looked up, at most `size_m` drafted. Raises ValueError for values out of range."""

    size_n: int = 12
    size_m: int = 48

    def __post_init__(self) -> None:
        in_range("size_n", self.size_n, 1, LONGEST_GRAM)
        in_range("size_m", self.size_m, 1, LONGEST_DRAFT)


@dataclass(frozen=True, slots=True)
class NgramMapSettings:
    """Keys of `size_n` tokens, drafts of at most `size_m`, from keys that occurred `min_hits` times or more.

    Raises ValueError for values out of range.
    """

    size_n: int = 12
    size_m: int = 48
    min_hits: int = 1

    def __post_init__(self) -> None:
        in_range("size_n", self.size_n, 1, LONGEST_GRAM)
        in_range("size_m", self.size_m, 1, LONGEST_DRAFT)
        in_range("min_hits", self.min_hits, 1, MOST_OCCURRENCES)


@dataclass(frozen=True, slots=True)
class NgramModSettings:
    """`n_match` tokens are hashed; a draft has at most `n_max` tokens, and at least `n_min` must have been found.

    The table has two to the power of `table_bits` slots of 4 bytes. Raises ValueError for values out of range.
    """

    n_match: int = 24
    n_min: int = 48
    n_max: int = 64
    table_bits: int = 22

    def __post_init__(self) -> None:
        in_range("n_match", self.n_match, 1, LONGEST_GRAM)
        in_range("n_max", self.n_max, 1, LONGEST_DRAFT)
        in_range("n_min", self.n_min, 0, self.n_max)
        in_range("table_bits", self.table_bits, 1, 28)


@dataclass(frozen=True, slots=True)
class NgramCacheSettings:
    """When a count is trusted, for n-grams of 1, 2, ... tokens: how often it was seen, and how large a share of what
    followed the favourite must have. `context` is the text itself, `dynamic` what other texts have taught.

    Three of four have to agree, where llama.cpp asks for two of three (one token) and half: what fewer agree on is
    wrong too often. `n_max` bounds a draft. Beyond `dynamic_limit` n-grams the dynamic counts are forgotten. Raises
    ValueError for values out of range, or if the four do not speak of the same sizes.
    """

    n_max: int = 8
    context_min_samples: tuple[int, ...] = (2, 2, 1, 1)
    context_min_percent: tuple[int, ...] = (75, 75, 75, 75)
    dynamic_min_samples: tuple[int, ...] = (4, 3, 2, 2)
    dynamic_min_percent: tuple[int, ...] = (75, 66, 66, 66)
    dynamic_limit: int = 400_000

    def __post_init__(self) -> None:
        in_range("n_max", self.n_max, 1, LONGEST_DRAFT)
        in_range("dynamic_limit", self.dynamic_limit, 0, 2**31)
        sizes = len(self.context_min_samples)
        in_range("the number of sizes", sizes, 1, LONGEST_CACHED_GRAM)
        for kind in ("context", "dynamic"):
            samples: tuple[int, ...] = getattr(self, f"{kind}_min_samples")
            percent: tuple[int, ...] = getattr(self, f"{kind}_min_percent")
            if len(samples) != sizes or len(percent) != sizes:
                raise ValueError(f"the thresholds of the {kind} are not for n-grams of 1 to {sizes} tokens")
            for value in samples:
                in_range(f"{kind}_min_samples", value, 1, 2**31)
            for value in percent:
                in_range(f"{kind}_min_percent", value, 1, 100)
