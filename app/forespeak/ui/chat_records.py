"""Between the store's records, the engine's requests and the view's items: pure functions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

from forespeak.chats.records import JsonValue, Message, MessageState
from forespeak.engines.engine import ChatMessage, GenerationRequest, LoadSettings, Role, TextSourceSettings
from forespeak.speculation.json_values import sampling_record
from forespeak.speculation.settings import Rule, SamplingSettings
from forespeak.speculation.trace import Source, Step
from forespeak.ui.conversation import MessageItem
from forespeak.ui.kept_load_settings import entries_of
from forespeak.ui.live_reply import LiveReply
from forespeak.ui.preferences import Preferences

Steps = tuple[Step, ...] | Callable[[], tuple[Step, ...]]
"""A reply's steps, or what reads them when they are about to be seen."""
ALTERNATIVES = 3
PLAIN_RATE = "plain_tokens_per_second"
TITLE_WORDS = 6
TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class ReplySettings:
    """What a reply is made with. `random_seed` is settled by now: the seed in `sampling` is the one used."""

    sampling: SamplingSettings
    sources: tuple[Source, ...]
    """Empty: without speculation."""
    text_sources: TextSourceSettings
    rule: Rule
    draft_length: int | None
    max_tokens: int | None
    target: str
    draft: str | None
    json_schema: str | None = None
    grammar: str | None = None
    """At most one of the two."""
    load_settings: LoadSettings = field(default_factory=LoadSettings)

    @classmethod
    def of(cls, preferences: Preferences, *, has_draft: bool) -> ReplySettings:
        """`has_draft`: a draft model is loaded, or may yet be."""
        sampling = preferences.sampling
        if preferences.random_seed:
            sampling = replace(sampling, seed=secrets.randbits(32))
        return cls(
            sampling,
            preferences.drafting_if(has_draft) if preferences.speculate else (),
            preferences.text_sources,
            preferences.rule,
            preferences.draft_length,
            preferences.max_tokens,
            "" if preferences.target is None else preferences.target.name,
            None if preferences.draft is None else preferences.draft.name,
            preferences.output.json_schema,
            preferences.output.bound_grammar,
            preferences.load_settings,
        )

    def record(self, plain_rate: float | None) -> dict[str, JsonValue]:
        """For the store, so that a reply can be made again. `plain_rate`: what its speed may be compared with."""
        return {
            PLAIN_RATE: plain_rate,
            "sampling": sampling_record(self.sampling),
            "json_schema": self.json_schema,
            "grammar": self.grammar,
            "sources": [source.value for source in self.sources],
            "text_sources": asdict(self.text_sources),
            "rule": self.rule.value,
            "draft_length": self.draft_length,
            "max_tokens": self.max_tokens,
            "target": self.target,
            "draft": self.draft,
            **entries_of(self.load_settings),
        }

    @property
    def plain_key(self) -> tuple[object, ...]:
        """What two speeds must share to be compared."""
        return (self.target, self.load_settings.of_target)

    def request(self, history: Sequence[ChatMessage]) -> GenerationRequest:
        return GenerationRequest(
            messages=tuple(history),
            sources=self.sources,
            text_sources=self.text_sources,
            sampling=self.sampling,
            rule=self.rule,
            draft_length=self.draft_length,
            max_tokens=self.max_tokens,
            alternatives=ALTERNATIVES,
            json_schema=self.json_schema,
            grammar=self.grammar,
        )


def title_of(text: str) -> str:
    """The first few words of a message, on one line."""
    words = text.split()
    title = " ".join(words[:TITLE_WORDS])
    shortened = len(words) > TITLE_WORDS or len(title) > TITLE_LENGTH
    return f"{title[:TITLE_LENGTH].rstrip()}…" if shortened else title


def history_of(system_prompt: str, messages: Iterable[tuple[Role, str]]) -> tuple[ChatMessage, ...]:
    """What the model reads. Most templates want the roles to alternate, so neighbours of one role become one."""
    history: list[ChatMessage] = []
    if system_prompt.strip():
        history.append(ChatMessage(Role.SYSTEM, system_prompt))
    for role, text in messages:
        if not text:
            continue
        if history and history[-1].role is role:
            history[-1] = ChatMessage(role, f"{history[-1].content}\n\n{text}")
        else:
            history.append(ChatMessage(role, text))
    return tuple(history)


def item_of(message: Message, steps: Steps, version: int, versions: int) -> MessageItem:
    """`version` of `versions`, counted from 1."""
    plain = message.settings.get(PLAIN_RATE)
    return MessageItem(
        id=message.id,
        role=message.role,
        text=message.text,
        steps=steps,
        stats=message.stats,
        state=_shown_state(message.state, message.note),
        note=message.note,
        version=version,
        versions=versions,
        plain_tokens_per_second=float(plain) if isinstance(plain, int | float) else None,
    )


def _shown_state(state: MessageState, note: str) -> str:
    """A whole reply that has something to say ended for a reason, such as a full context: shown as stopped."""
    return "stopped" if state is MessageState.COMPLETE and note else state.value


def with_live(item: MessageItem, reply: LiveReply) -> MessageItem:
    """The item as far as the reply has come, which the store may not have yet."""
    ending = reply.ending
    return replace(
        item,
        text=reply.text,
        steps=tuple(reply.steps),
        state="generating" if ending is None else _shown_state(ending.state, ending.note),
        note="" if ending is None else ending.note,
        stats=None if ending is None else ending.stats,
    )


def context_tokens(items: Sequence[MessageItem]) -> int | None:
    """What the chat took in the context after its last reply; None if that is not known."""
    for item in reversed(items):
        if isinstance(item.steps, tuple) and item.steps:
            return item.steps[-1].cache_length or None
    return None
