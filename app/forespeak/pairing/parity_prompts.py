"""What a parity check asks: short and unlike each other, so that drafts are good, poor and wrong in turn."""

from __future__ import annotations

PROMPTS: dict[str, str] = {
    "code": "Write a Python function `median(values)` for a list of numbers. Only the code.",
    "list": "List eight things to pack for a week of walking in the hills, one per line.",
    "cjk": "請用三句話介紹颱風是怎麼形成的。",
    "repetition": "Write this line six times without any change: the red kettle hums on the old iron stove",
    "prose": "Describe a railway station at five in the morning, in one quiet paragraph.",
    "emoji": "Tell the story of a rainy day and a cat, with an emoji after every sentence. 🌧️🐈",
    "json": 'Give me JSON with the keys "name", "height_m" and "country" for three mountains.',
    "one word": "In one word: what is the opposite of narrow?",
    "numbers": "Count down from forty to one in steps of three, separated by commas.",
    "rewrite": (
        "Correct the spelling and change nothing else: Their are too ways to open the libary dor, "
        "and niether of them works wenn it rains."
    ),
    "translation": "Translate into German: We will meet the new neighbours in the garden after supper.",
    "table": "Make a Markdown table of four planets with their moons and their colour.",
}
"""In an order in which the first few are already varied."""

SAMPLED_TEMPERATURE = 0.8
SEED = 20
