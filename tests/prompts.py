"""Prompts of many kinds, for parity tests and benchmarks."""

LONG_TEXT = " ".join(
    f"In year {year} the {place} library lent {year * 7 % 991} books about {topic}."
    for year, place, topic in (
        (
            1900 + i,
            ("harbour", "hill", "market", "river")[i % 4],
            ("birds", "bridges", "clocks", "tides", "maps")[i % 5],
        )
        for i in range(105)
    )
)
"""About 2,000 tokens for SmolLM2's tokenizer."""

PROMPTS: dict[str, str] = {
    "code": "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
    "code-fix": "Fix this C code and explain:\n"
    "int sum(int *a, int n) { int s; for (int i = 0; i <= n; i++) s += a[i]; }",
    "list": "List ten kinds of fruit, one per line.",
    "numbers": "Count from one to thirty in words.",
    "prose": "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "explain": "Explain how a bicycle stays upright, step by step.",
    "letter": "Write a polite letter to a landlord about a broken heater.",
    "summary": "Summarise in two sentences: The river rose for three days. On the fourth, the bridge was closed, "
    "and the market moved to the hill, where the bakers complained of the wind and the children of the steps.",
    "rewrite": "Rewrite this text in the past tense, changing nothing else: She opens the shop at eight, sweeps the "
    "floor, puts out the bread, and greets every customer by name.",
    "json": 'Give three cities as JSON, in the form [{"name": "...", "country": "...", "population": 0}].',
    "table": "Make a Markdown table of the planets with their number of moons.",
    "repeat": "Repeat the word 'again' twenty times, separated by spaces.",
    "one-word": "What is the capital of France? Answer with one word.",
    "math": "A train travels 120 km in 1.5 hours. What is its average speed? Show the steps.",
    "cjk": "用中文介紹一下京都的三個景點。",
    "japanese": "日本の四季について短く説明してください。",
    "emoji": "Write a birthday greeting with many emoji 🎂🎉🎈, one line for each year from 1 to 5.",
    "translation": "Translate into French: The weather is nice today, so we are going to the beach with our friends.",
    "dialogue": "Write a dialogue between a cat and a dog about who should sleep on the sofa.",
    "long-input": f"{LONG_TEXT}\n\nHow many libraries are named in this text, and which ones?",
}
