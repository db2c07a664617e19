"""What a model's name says: family, size, and which smaller models to look for. Names are hints, never proof."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_SIZE = re.compile(r"(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])", re.IGNORECASE)
_ACTIVE = re.compile(r"a(\d+(?:\.\d+)?)([bm])", re.IGNORECASE)
_FORMAT = re.compile(
    r"(?<![a-z0-9])(?:i?q\d+(?:_[0-9a-z]+)*|tq\d_\d|(?:f|fp|bf)(?:16|32)|mxfp4(?:_moe)?|nvfp4|\d+-?bit|i1|ud|imat"
    r"|imatrix|gguf|mlx)(?![a-z0-9])",
    re.IGNORECASE,
)
_SHARD = re.compile(r"-\d{5,9}-of-\d{5,9}$")
_MADE = re.compile(r"-draft-(?=Q\d)")
"""As in `making.made_path`: the weights are those of the model before it."""
_VARIANTS = {"instruct", "chat", "it", "base", "hf", "thinking", "preview", "qat", "pt", "sft", "dpo", "reasoning"}
_EDITION = re.compile(r"v\d+(?:\.\d+)*|2[3-9](?:0[1-9]|1[0-2])")
"""`v0.3`, or a month, as in `Instruct-2507`."""
_MAKERS = {"meta", "google", "microsoft", "mistralai", "nvidia", "ibm", "huggingfacetb", "openai", "alibaba"}


@dataclass(frozen=True, slots=True)
class ModelName:
    """A name taken apart. `family` are the words that sizes and variants of one model share, in lower case.

    `parameters` and `active` (of a mixture of experts) are numbers of weights; None where the name does not say.
    """

    family: tuple[str, ...]
    parameters: float | None = None
    active: float | None = None
    variants: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """The family for people and searches: `qwen2.5 coder`."""
        return " ".join(self.family)


def parse_name(name: str) -> ModelName:
    """Takes apart a file name, a repository (`owner/name`) or the name in a header."""
    stem = name.rsplit("/", 1)[-1]
    stem = re.sub(r"\.(gguf|safetensors)$", "", stem, flags=re.IGNORECASE)
    stem = _SHARD.sub("", stem)
    stem = _FORMAT.sub(" ", _MADE.sub("-", stem))
    family: list[str] = []
    variants: set[str] = set()
    parameters = active = None
    words = [word.strip("()[].,") for word in re.split(r"[-_\s:]+", stem.lower())]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if (match := _ACTIVE.fullmatch(word)) is not None:
            active = _count(match[1], match[2])
        elif (match := _SIZE.fullmatch(word)) is not None:
            parameters = parameters or _count(match[2], match[3]) * int(match[1] or 1)
        elif word in _VARIANTS or (family and _EDITION.fullmatch(word)):
            variants.add(word)
        # A maker's name before the family's own: `Meta-Llama-3.1`, `Qwen_Qwen3`.
        elif word and not (not family and following and (word in _MAKERS or following.startswith(word))):
            family.append(word)
    return ModelName(tuple(family), parameters, active, frozenset(variants))


def _count(number: str, unit: str) -> float:
    return float(number) * (1e9 if unit.lower() == "b" else 1e6)


class Kinship(Enum):
    """How two models are related, as far as their names tell."""

    SAME_WEIGHTS = "the same model in another format"
    SAME_FAMILY = "a smaller model of the same family"
    RELATED = "a model of a related family"
    OTHER = "a model of another family"


def kinship(
    target: ModelName, draft: ModelName, target_weights: float | None = None, draft_weights: float | None = None
) -> Kinship:
    """By the names, and by the numbers of weights where headers give them; else those in the names."""
    if not target.family or not draft.family:
        return Kinship.OTHER
    a, b = "".join(target.family), "".join(draft.family)
    if a == b:
        one, other = target_weights or target.parameters, draft_weights or draft.parameters
        same_size = bool(one and other and abs(one - other) <= 0.02 * max(one, other))
        return Kinship.SAME_WEIGHTS if same_size and target.variants == draft.variants else Kinship.SAME_FAMILY
    if any(
        a == family and any(b in "".join(parse_name(other).family) for other in others)
        for family, others in _OTHER_SIZES
    ):
        return Kinship.SAME_FAMILY
    line, other_line = (re.split(r"[\d.]", name.family[0])[0] for name in (target, draft))
    return Kinship.RELATED if line and line == other_line else Kinship.OTHER


_OTHER_SIZES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("llama3.1", ("Llama-3.2-1B-Instruct", "Llama-3.2-3B-Instruct")),
    ("llama3.3", ("Llama-3.2-1B-Instruct", "Llama-3.2-3B-Instruct")),
    ("qwq", ("Qwen2.5-0.5B-Instruct", "Qwen2.5-1.5B-Instruct")),
)
"""Families whose small sizes bear another name; what the vocabularies say decides, as always."""


def search_terms(target: str, architecture: str | None = None) -> tuple[str, ...]:
    """What to search the Hub for to find drafts for a target, most promising first; empty if nothing is to be guessed.

    `architecture` is the header's, used where the name says nothing.
    """
    name = parse_name(target)
    joined = "".join(name.family)
    terms = [term for family, others in _OTHER_SIZES if joined == family for term in others]
    if name.family:
        terms.append("-".join(name.family))
        if len(name.family) > 1 and any(letter.isdigit() for letter in name.family[0]):
            # Coder and maths models draft well from the plain small ones of their generation.
            terms.append(name.family[0])
    elif architecture:
        terms.append(architecture)
    return tuple(dict.fromkeys(terms))
