from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.engines.chat_template import ChatTemplate
from forespeak.engines.engine import ChatMessage, Role

SHARED_TEMPLATES = Path(__file__).parents[3] / "shared" / "data" / "chat_templates"

CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant"
ASK = (ChatMessage(Role.SYSTEM, "Be brief."), ChatMessage(Role.USER, "Why is the sky blue?"))


def test_renders_the_models_own_template() -> None:
    rendered = ChatTemplate(CHATML, "<s>", "</s>").render(ASK)
    assert rendered.text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhy is the sky blue?<|im_end|>\n"
        "<|im_start|>assistant"
    )
    assert rendered.notice is None


def test_a_model_without_a_template_says_so_and_speaks_chatml() -> None:
    template = ChatTemplate(None, "", "")
    assert template.problem is not None
    assert "no chat template" in template.problem
    rendered = template.render(ASK)
    assert rendered.text.endswith("<|im_start|>assistant\n")
    assert rendered.stop == ("<|im_end|>",)


def test_a_faulty_template_says_why_and_falls_back() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content }", "", "")
    assert template.problem is not None
    assert "faulty" in template.problem
    assert "Why is the sky blue?" in template.render(ASK).text


def test_a_template_without_a_system_role_gets_it_in_the_first_message() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
        "[{{ m.role }}] {{ m.content }}\n{% endfor %}"
    )
    rendered = ChatTemplate(source, "", "").render(ASK)
    assert rendered.text == "[user] Be brief.\n\nWhy is the sky blue?\n"
    assert rendered.notice is not None
    assert "system prompt" in rendered.notice


def test_a_template_that_fails_on_the_conversation_falls_back_with_its_reason() -> None:
    rendered = ChatTemplate("{{ messages[7].content.strip() }}", "", "").render(ASK)
    assert "Why is the sky blue?" in rendered.text
    assert rendered.notice is not None
    assert "no element 7" in rendered.notice


def test_a_template_cannot_reach_outside() -> None:
    source = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    rendered = ChatTemplate(source, "", "").render(ASK)
    assert rendered.notice is not None


@pytest.mark.skipif(
    not SHARED_TEMPLATES.is_dir(), reason="the collection of real chat templates is not beside the repository"
)
def test_every_real_template_renders_a_conversation() -> None:
    conversation = (*ASK, ChatMessage(Role.ASSISTANT, "Because of scattering."), ChatMessage(Role.USER, "And at dusk?"))
    fell_back = []
    for path in sorted(SHARED_TEMPLATES.glob("*.jinja")):
        rendered = ChatTemplate(path.read_text(encoding="utf-8"), "<s>", "</s>").render(conversation)
        assert "And at dusk?" in rendered.text, path.name
        if rendered.stop:
            fell_back.append(path.name)
    # This one wants the text of its functions and has no form without.
    assert fell_back == ["fireworks-ai-llama-3-firefunction-v2.jinja"]
