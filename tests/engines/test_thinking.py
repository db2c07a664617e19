"""Marks of thoughts: which a template uses, and what a prompt leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.engines.thinking import ThoughtMarks, Thoughts, thought_marks, thoughts_behind

THINK = ThoughtMarks("<think>", "</think>")
PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "data" / "chat_templates"
"""Chat templates as models bring them, where they are at hand."""


def test_a_template_without_thoughts_has_no_marks() -> None:
    assert thought_marks(None) is None
    assert thought_marks("{{ messages[0].content }} I think, therefore…") is None


@pytest.mark.parametrize(
    ("template", "marks"),
    [
        ("{{ content.split('</think>')[-1] }}", THINK),
        ("<seed:think>{{ x }}</seed:think>", ThoughtMarks("<seed:think>", "</seed:think>")),
        ("[THINK]{{ x }}[/THINK]", ThoughtMarks("[THINK]", "[/THINK]")),
        ("<|channel>thought\n{{ x }}<channel|>", ThoughtMarks("<|channel>", "<channel|>")),
        (
            "<|start|>assistant<|channel|>analysis<|message|>{{ x }}<|channel|>final<|message|>",
            ThoughtMarks("<|channel|>", "<|channel|>final<|message|>"),
        ),
    ],
)
def test_the_marks_are_the_templates(template: str, marks: ThoughtMarks) -> None:
    assert thought_marks(template) == marks


@pytest.mark.parametrize(
    ("prompt", "thoughts"),
    [
        ("user: What does <think> mean?\nassistant:", Thoughts("</think>", "<think>")),
        ("assistant:\n<think>", Thoughts("</think>")),
        ("assistant: <think>\n\n", Thoughts("</think>")),
        ("assistant: <think>\n\n</think>\n\n", Thoughts()),
        ("assistant:</think>", Thoughts()),
    ],
)
def test_what_the_prompt_leaves_open(prompt: str, thoughts: Thoughts) -> None:
    assert thoughts_behind(prompt, THINK) == thoughts
    assert thoughts_behind(prompt, None) == Thoughts()


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published templates are not here")
@pytest.mark.parametrize(
    ("name", "closer"),
    [
        ("Apertus-8B-Instruct", "<|inner_suffix|>"),
        ("Apriel-1.6-15b-Thinker-fixed", "[BEGIN FINAL RESPONSE]"),
        ("ByteDance-Seed-OSS", "</seed:think>"),
        ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|END_THINKING|>"),
        ("HuggingFaceTB-SmolLM3-3B", "</think>"),
        ("LFM2.5-Instruct", "</think>"),
        ("MiniMax-M3", "</mm:think>"),
        ("google-gemma-4-31B-it-interleaved", "<channel|>"),
        ("mistralai-Ministral-3-14B-Reasoning-2512", "[/THINK]"),
        ("openai-gpt-oss-120b", "<|channel|>final<|message|>"),
        ("unsloth-Apriel-1.5", "</thinking>"),
        ("Qwen3-Coder", None),
    ],
)
def test_the_marks_of_published_templates(name: str, closer: str | None) -> None:
    marks = thought_marks((PUBLISHED / f"{name}.jinja").read_text(encoding="utf-8"))
    assert (None if marks is None else marks.closer) == closer
