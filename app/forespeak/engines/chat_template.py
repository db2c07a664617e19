"""A conversation to the text that the model was trained to continue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from forespeak.engines.engine import ChatMessage, Role

# ChatML, which most models have at least seen, for models without a template or with one that cannot be rendered.
_FALLBACK = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_FALLBACK_STOP = "<|im_end|>"


class _GenerationTag(Extension):
    """`{% generation %}` marks the assistant's words for training; for rendering it means nothing."""

    tags = {"generation"}  # noqa: RUF012 -- Jinja's own protocol

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _environment() -> ImmutableSandboxedEnvironment:
    """The Jinja dialect of Hugging Face's chat templates (transformers, `utils/chat_template_utils.py`)."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


_ENVIRONMENT = _environment()


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The prompt's text, strings that end a reply beside the model's own end, and what the user should know."""

    text: str
    stop: tuple[str, ...] = ()
    notice: str | None = None


class ChatTemplate:
    """A model's chat template, with a fallback that always renders.

    `problem` says in plain words why the model's own template is not used at all; None if it is.
    """

    def __init__(self, source: str | None, bos: str, eos: str) -> None:
        self._bos, self._eos = bos, eos
        self._fallback = _ENVIRONMENT.from_string(_FALLBACK)
        self._own: Template | None = None
        self.problem: str | None = None
        if source is None:
            self.problem = "The model has no chat template; ChatML is used instead."
            return
        try:
            self._own = _ENVIRONMENT.from_string(source)
        except TemplateError as error:
            self.problem = f"The model's chat template is faulty ({error}); ChatML is used instead."

    def render(self, messages: Sequence[ChatMessage]) -> RenderedPrompt:
        if self._own is None:
            return RenderedPrompt(self._render(self._fallback, messages), (_FALLBACK_STOP,))
        try:
            return RenderedPrompt(self._render(self._own, messages))
        except Exception as error:  # noqa: BLE001 -- a template is a program from a file; it may raise anything
            reason = str(error) or type(error).__name__
        if any(message.role is Role.SYSTEM for message in messages):
            # Several families have no system role and say so by failing.
            try:
                return RenderedPrompt(
                    self._render(self._own, _without_system_role(messages)),
                    notice="This model's chat template takes no system prompt; it was put before your first message.",
                )
            except Exception as error:  # noqa: BLE001 -- as above
                reason = str(error) or type(error).__name__
        return RenderedPrompt(
            self._render(self._fallback, messages),
            (_FALLBACK_STOP,),
            f"The model's chat template failed on this conversation ({reason}); ChatML was used instead.",
        )

    def _render(self, template: Template, messages: Sequence[ChatMessage]) -> str:
        # Tools, documents and the like stay undefined: templates test for them in ways that None does not survive.
        return template.render(
            messages=[{"role": message.role.value, "content": message.content} for message in messages],
            add_generation_prompt=True,
            bos_token=self._bos,
            eos_token=self._eos,
        )


def _without_system_role(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """System messages become the beginning of the first user message."""
    system = [message.content for message in messages if message.role is Role.SYSTEM]
    rest = [message for message in messages if message.role is not Role.SYSTEM]
    if rest and rest[0].role is Role.USER:
        rest[0] = ChatMessage(Role.USER, "\n\n".join([*system, rest[0].content]))
    return rest
