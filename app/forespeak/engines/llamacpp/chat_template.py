"""A conversation to the text that the model was trained to continue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import TemplateError
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from forespeak.engines.engine import ChatMessage, Role

# ChatML, which most models have at least seen, for models without a template or with one that cannot be rendered.
_FALLBACK = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_FALLBACK_STOP = "<|im_end|>"


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
        self._fallback = self._compile(_FALLBACK)
        self._own: Jinja2ChatFormatter | None = None
        self.problem: str | None = None
        if source is None:
            self.problem = "The model file has no chat template; ChatML is used instead."
            return
        try:
            self._own = self._compile(source)
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

    def _compile(self, source: str) -> Jinja2ChatFormatter:
        return Jinja2ChatFormatter(template=source, eos_token=self._eos, bos_token=self._bos)

    @staticmethod
    def _render(formatter: Jinja2ChatFormatter, messages: Sequence[ChatMessage]) -> str:
        plain = [{"role": message.role.value, "content": message.content} for message in messages]
        return str(formatter(messages=plain).prompt)


def _without_system_role(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """System messages become the beginning of the first user message."""
    system = [message.content for message in messages if message.role is Role.SYSTEM]
    rest = [message for message in messages if message.role is not Role.SYSTEM]
    if rest and rest[0].role is Role.USER:
        rest[0] = ChatMessage(Role.USER, "\n\n".join([*system, rest[0].content]))
    return rest
