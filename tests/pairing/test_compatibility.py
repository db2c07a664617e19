from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from forespeak.models.gguf import read_header
from forespeak.pairing.compatibility import Obstacle, Verdict, VerdictKind, compatibility, refusal
from forespeak.pairing.compatibility import judge as judge_members
from forespeak.pairing.members import member_of
from forespeak.pairing.vocabularies import NEEDS_RETOKENISING
from models.gguf_writer import CONTROL, NORMAL, USER_DEFINED, ModelFile, gguf
from models.mlx_writer import mlx_folder

WORDS: list[str | bytes] = [f"w{index}" for index in range(200)]
SPECIAL: list[str | bytes] = ["<|endoftext|>", "<|im_end|>"]
SETTINGS = {"bos_token_id": 200, "eos_token_id": 201}


def model(tokens: list[str | bytes] | None = None, types: dict[int, int] | None = None, **changes: Any) -> ModelFile:
    """A model of 200 words and two control tokens, with what is given changed."""
    listed = [*WORDS, *SPECIAL] if tokens is None else tokens
    kinds = [CONTROL if token in SPECIAL else NORMAL for token in listed]
    for token, kind in (types or {}).items():
        kinds[token] = kind
    settings = {**SETTINGS, **changes.pop("settings", {})}
    return replace(ModelFile(listed, kinds, settings=settings), **changes)


def with_token(token: int, text: str) -> ModelFile:
    tokens = [*WORDS, *SPECIAL]
    tokens[token] = text
    return model(tokens)


def padded(count: int, name: str = "[PAD{}]") -> ModelFile:
    return model([*WORDS, *SPECIAL, *(name.format(202 + index) for index in range(count))])


Judge = Callable[[ModelFile, ModelFile], Verdict]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Write two models and return the verdict, having checked what holds for every verdict."""

    def verdict(target: ModelFile, draft: ModelFile) -> Verdict:
        # Each time in a folder of its own: two files written within one tick of the clock look alike to the cache.
        folder = Path(mkdtemp(dir=tmp_path))
        paths = target.write(folder / "target.gguf"), draft.write(folder / "draft.gguf")
        found = compatibility(*paths)
        assert json.loads(json.dumps(found.evidence)) == found.evidence
        assert found.reason.endswith(".")
        assert refusal(*paths) == (None if found.usable else found.reason)
        return found

    return verdict


def test_the_same(judge: Judge) -> None:
    found = judge(model(), model())
    assert (found.kind, found.usable) == (VerdictKind.SAME, True)
    assert found.reason == "Both have the same 202 tokens."
    assert found.evidence["differences"] == 0


@pytest.mark.parametrize(("ours", "theirs"), [(0, 128), (300, 1), (0, 1000), (5, 0)])
def test_padding_of_any_length(judge: Judge, ours: int, theirs: int) -> None:
    found = judge(padded(ours), padded(theirs))
    assert (found.kind, found.usable) == (VerdictKind.SAME_PADDED, True)
    assert found.evidence["padding"] == abs(ours - theirs)
    assert ("draft" in found.reason) == (theirs > ours)


def test_padding_under_other_names(judge: Judge) -> None:
    found = judge(padded(3), padded(3, "<|extra_{}|>"))
    assert (found.kind, found.usable) == (VerdictKind.SAME, True)


def test_padding_as_wide_as_real_ones(judge: Judge) -> None:
    words: list[str | bytes] = [f"w{index}" for index in range(151_643)]
    wide = [*words, *(f"[PAD{index}]" for index in range(len(words), 152_064))]
    target, draft = ModelFile(list(wide)), ModelFile(list(wide[:151_936]))
    found = judge(target, draft)
    assert (found.kind, found.usable) == (VerdictKind.SAME_PADDED, True)
    assert found.reason == "Both have the same 151,936 tokens; the target's list is padded with 128 unused ones."


def test_a_vocabulary_of_262_144_tokens(judge: Judge) -> None:
    words: list[str | bytes] = [f"w{index}" for index in range(262_144)]
    other = [*words[:-1], "fin"]
    assert judge(ModelFile(words), ModelFile(list(words))).kind is VerdictKind.SAME
    found = judge(ModelFile(words), ModelFile(other))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    assert found.reason.startswith("Token 262143 is “w262143” in the target and “fin” in the draft.")


@pytest.mark.parametrize("token", [0, 3, 139, 199])
def test_one_other_token_is_named(judge: Judge, token: int) -> None:
    found = judge(model(), with_token(token, "other"))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    words = f"Token {token} is “w{token}” in the target and “other” in the draft."
    assert found.reason == f"{words} The target can write it."
    assert found.evidence["differences"] == 1
    assert found.evidence["first"] == {
        "id": token,
        "target": f"w{token}",
        "draft": "other",
        "target_can_write": True,
        "draft_can_write": True,
    }


def test_the_last_of_all_tokens(judge: Judge) -> None:
    found = judge(model([*WORDS, "end"]), model([*WORDS, "fin"]))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    assert "Token 200 is “end” in the target and “fin” in the draft." in found.reason


def test_several_are_counted(judge: Judge) -> None:
    tokens = [*WORDS, *SPECIAL]
    tokens[10], tokens[20], tokens[30] = "x", "y", "z"
    found = judge(model(), model(tokens))
    words = "Token 10 is “w10” in the target and “x” in the draft."
    assert found.reason == f"{words} The target can write it. In all 3 tokens differ."


def test_the_same_tokens_in_another_order(judge: Judge) -> None:
    found = judge(model(), model([WORDS[0], *reversed(WORDS[1:]), *SPECIAL]))
    assert (found.kind, found.usable) == (VerdictKind.OTHER_TOKENIZER, False)
    words = "Of 202 tokens 198 differ. Token 1 is “w1” in the target and “w199” in the draft."
    assert found.reason == f"{words} {NEEDS_RETOKENISING}"


def test_another_kind_of_tokenizer(judge: Judge) -> None:
    found = judge(model(), model(model="llama"))
    assert (found.kind, found.usable) == (VerdictKind.OTHER_TOKENIZER, False)
    assert "byte-level BPE in the target and SentencePiece in the draft" in found.reason


def test_bos(judge: Judge) -> None:
    adds = {"add_bos_token": True}
    found = judge(model(settings=adds), model())
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    assert "The target begins every text with token 200 “<|endoftext|>”, and the draft" in found.reason
    assert found.evidence["settings"] == ["add_bos_token"]
    assert not judge(model(settings=adds), model(settings={**adds, "bos_token_id": 201})).usable
    # Ids that are put nowhere do not matter.
    assert judge(model(), model(settings={"bos_token_id": 201})).kind is VerdictKind.SAME
    # What llama.cpp does where the file is silent.
    assert not judge(model(pre="llama-bpe"), model(pre="llama-bpe", settings={"add_bos_token": False})).usable
    assert judge(model(pre="llama-bpe"), model(pre="llama-bpe", settings=adds)).usable


def test_eos(judge: Judge) -> None:
    assert not judge(model(), model(settings={"add_eos_token": True})).usable
    # A base model and its instruction-tuned sister end their replies differently.
    found = judge(model(), model(settings={"eos_token_id": 200}))
    assert (found.kind, found.usable) == (VerdictKind.SAME, True)
    assert "end a reply with different tokens" in found.reason


@pytest.mark.parametrize("changes", [{"merges": ["b a"]}, {"pre": "smollm"}])
def test_other_rules_of_splitting_are_only_noted(judge: Judge, changes: dict[str, Any]) -> None:
    found = judge(model(), model(**changes))
    assert (found.kind, found.usable) == (VerdictKind.SAME, True)
    assert "split text by different rules" in found.reason


def test_chat_template_scores_and_architecture_do_not_count(judge: Judge) -> None:
    other = model(settings={"scores": [0.5] * 202}, architecture="llama")
    other.entries["tokenizer.chat_template"] = "{{ messages }}"
    found = judge(model(), other)
    assert (found.kind, found.reason) == (VerdictKind.SAME, "Both have the same 202 tokens.")


def test_a_token_that_only_the_target_has(judge: Judge) -> None:
    added = model([*WORDS, *SPECIAL, "<tool_call>"], {202: USER_DEFINED})
    found = judge(added, model())
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    words = "Token 202 “<tool_call>” of the target is unknown to the draft, whose last token is 201."
    assert found.reason == f"{words} The target can write it."
    assert found.evidence["first"]["draft"] is None
    assert (found.evidence["first"]["target_can_write"], found.evidence["first"]["draft_can_write"]) == (True, False)
    found = judge(added, padded(1))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    words = "Token 202 is “<tool_call>” in the target and “[PAD202]” in the draft."
    assert found.reason == f"{words} The target can write it."


def test_a_token_that_only_the_draft_has(judge: Judge) -> None:
    added = model([*WORDS, *SPECIAL, "<tool_call>"], {202: USER_DEFINED})
    for target, words in ((model(), "which never writes it."), (padded(1), "The target never writes it.")):
        found = judge(target, added)
        assert (found.kind, found.usable) == (VerdictKind.DIFFERS, True)
        assert "<tool_call>" in found.reason
        assert words in found.reason
        assert found.evidence["refusing_differences"] == 0
        assert not found.evidence["first"]["target_can_write"]


def test_types(judge: Judge) -> None:
    found = judge(model(), model(types={139: CONTROL}))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    words = "Token 139, “w139”, is of the kind “normal” in the target and “control” in the draft."
    assert found.reason == f"{words} The target can write it."
    marker = [*WORDS, *SPECIAL, "<tool_call>"]
    assert judge(model(marker, {202: CONTROL}), model(marker, {202: USER_DEFINED})).kind is VerdictKind.SAME


def test_the_end_under_another_name(judge: Judge) -> None:
    found = judge(model(), model([*WORDS, SPECIAL[0], "</s>"], {201: CONTROL}, settings={"eot_token_id": 201}))
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, True)
    words = "Token 201 is “<|im_end|>” in the target and “</s>” in the draft."
    assert found.reason == f"{words} It has the same function in both. No draft is misled by it."


@pytest.mark.parametrize("side", [0, 1])
def test_a_vocabulary_without_weights_is_still_compared(tmp_path: Path, side: int) -> None:
    bare = model(tensors=()).write(tmp_path / "bare.gguf")
    for other, kind in ((model(), VerdictKind.SAME), (with_token(7, "x"), VerdictKind.DIFFERS)):
        whole = other.write(tmp_path / f"{kind.name}.gguf")
        found = compatibility(*((bare, whole) if side == 0 else (whole, bare)))
        assert (found.kind, found.usable, found.obstacle) == (kind, False, Obstacle.VOCABULARY_ONLY)
        assert f"The {('target', 'draft')[side]}'s file holds a vocabulary but no weights." in found.reason
        assert found.evidence["vocabularies_fit"] is (kind is VerdictKind.SAME)


@pytest.mark.parametrize("side", [0, 1])
def test_files_that_cannot_take_part(tmp_path: Path, side: int) -> None:
    good = model().write(tmp_path / "good.gguf")

    def against(bad: Path) -> Verdict:
        found = compatibility(*((bad, good) if side == 0 else (good, bad)))
        assert (found.kind, found.usable) == (VerdictKind.CANNOT, False)
        assert found.evidence["side"] == ("target", "draft")[side]
        assert bad.name in found.reason
        assert json.dumps(found.evidence)
        return found

    def file(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    weights = [("t", (4,))]
    clip = file("mmproj.gguf", gguf({"general.architecture": "clip"}, weights))
    assert against(clip).obstacle is Obstacle.PROJECTOR
    lora = file("lora.gguf", gguf({"general.architecture": "llama", "general.type": "adapter"}, weights))
    assert against(lora).obstacle is Obstacle.ADAPTER
    assert against(file("bert.gguf", gguf({"general.architecture": "bert"}, weights))).obstacle is Obstacle.ENCODER
    assert against(file("head.gguf", gguf({"general.architecture": "eagle3"}, weights))).obstacle is Obstacle.DRAFT_HEAD
    assert against(file("imatrix.gguf", gguf({"general.type": "imatrix"}))).obstacle is Obstacle.IMATRIX
    assert against(file("nothing.gguf", gguf({}))).obstacle is Obstacle.NO_MODEL
    dumb = file("dumb.gguf", gguf({"general.architecture": "llama"}, weights))
    assert against(dumb).obstacle is Obstacle.NO_VOCABULARY
    note = against(file("note.gguf", b"hello there"))
    assert (note.obstacle, note.evidence["problem"]) == (Obstacle.UNREADABLE, "not a GGUF file")
    assert "a text file" in note.reason
    cut = against(file("cut.gguf", good.read_bytes()[:-100]))
    assert (cut.obstacle, cut.evidence["problem"]) == (Obstacle.UNREADABLE, "incomplete")
    assert against(tmp_path / "gone.gguf").evidence["problem"] == "missing"
    assert against(tmp_path).obstacle is Obstacle.UNREADABLE


def test_split_models(tmp_path: Path) -> None:
    whole = model().write(tmp_path / "whole.gguf")
    split = {"split.count": 2}
    first = model(entries={**split, "split.no": 0}).write(tmp_path / "big-00001-of-00002.gguf")
    found = compatibility(first, whole)
    assert (found.kind, found.obstacle) == (VerdictKind.CANNOT, Obstacle.SHARD_MISSING)
    assert found.reason == "“big-00001-of-00002.gguf” is incomplete. Part 2 of 2 is missing."
    second = tmp_path / "big-00002-of-00002.gguf"
    data = gguf({**split, "split.no": 1}, [("t", (400,))])
    second.write_bytes(data[:-50])
    found = compatibility(first, whole)
    assert (found.obstacle, found.evidence["problem"]) == (Obstacle.UNREADABLE, "incomplete")
    assert second.name in found.reason
    second.write_bytes(data)
    assert compatibility(first, whole).usable
    assert compatibility(second, whole).obstacle is Obstacle.LATER_SHARD
    renamed = first.rename(tmp_path / "renamed.gguf")
    assert compatibility(renamed, whole).obstacle is Obstacle.SHARD_MISSING


def head(kind: str, hidden: str, size: int = 64, layers: list[int] | None = None) -> ModelFile:
    """A draft head for a target with hidden states of `size` numbers, with the words of `model()`."""
    entries: dict[str, Any] = {f"{kind}.{hidden}": size}
    return model(architecture=kind, entries=entries | ({f"{kind}.target_layers": layers} if layers else {}))


def sized(size: int = 64, architecture: str = "qwen2", mtp: int = 0) -> ModelFile:
    """A model of 24 layers; `mtp` of them predict more than the next token."""
    entries = {f"{architecture}.embedding_length": size, f"{architecture}.block_count": 24}
    more = {f"{architecture}.nextn_predict_layers": mtp} if mtp else {}
    return model(architecture=architecture, entries=entries | more)


HEADS = [
    (head("eagle3", "target_hidden_size"), sized(), None),
    (head("eagle3", "target_hidden_size", 96), sized(), "have 96 numbers, and this one's have 64"),
    (head("eagle3", "target_hidden_size", layers=[2, 12, 21]), sized(), None),
    (head("eagle3", "target_hidden_size", layers=[2, 12, 40]), sized(), "reads layer 40"),
    (head("dflash", "embedding_length", 32), sized(), "have 32 numbers"),
    (head("gemma4-assistant", "embedding_length_out"), sized(architecture="gemma4"), None),
    (
        head("gemma4-assistant", "embedding_length_out"),
        sized(),
        "of the kind gemma4, and this one is of the kind qwen2",
    ),
    (sized(mtp=1), sized(), None),
    (sized(32, mtp=1), sized(), "have 32 numbers"),
    (sized(architecture="glm4", mtp=1), sized(), "of the kind glm4"),
    (
        replace(head("eagle3", "target_hidden_size"), tokens=[*WORDS[:-1], "x", *SPECIAL]),
        sized(),
        "another vocabulary. Token 199 is “w199” in the target and “x” in the draft.",
    ),
]


@pytest.mark.parametrize(("draft", "target", "words"), HEADS)
def test_heads_are_held_against_the_target_they_were_made_for(
    judge: Judge, draft: ModelFile, target: ModelFile, words: str | None
) -> None:
    found = judge(target, draft)
    assert (found.kind, found.usable) == (VerdictKind.CANNOT, False)
    assert found.evidence["fits_target"] is (words is None)
    if words is None:
        assert found.obstacle is Obstacle.DRAFT_HEAD
        assert "cannot be used here yet" in found.reason
    else:
        assert found.obstacle is Obstacle.FOREIGN_HEAD
        assert words in found.reason


def test_a_whole_model_with_prediction_layers_is_no_head(judge: Judge) -> None:
    whole = sized(mtp=1)
    tensors = (*whole.tensors, ("blk.0.attn_norm.weight", (8,)))
    assert judge(sized(), replace(whole, tensors=tensors)).usable


def test_a_target_that_cannot_take_back_is_refused_as_the_engine_does(judge: Judge) -> None:
    found = judge(model(architecture="qwen35"), model())
    assert (found.kind, found.obstacle) == (VerdictKind.CANNOT, Obstacle.NO_ROLLBACK)
    assert found.evidence["vocabularies_fit"]
    # As a draft it may serve: what it has read is then read again.
    assert judge(model(), model(architecture="qwen35")).usable


@pytest.mark.parametrize(
    ("architecture", "obstacle"), [("t5", Obstacle.ENCODER), ("llada", Obstacle.NOT_LEFT_TO_RIGHT)]
)
def test_what_does_not_write_word_after_word(judge: Judge, architecture: str, obstacle: Obstacle) -> None:
    assert judge(model(architecture=architecture), model()).obstacle is obstacle
    assert judge(model(), model(architecture=architecture)).obstacle is obstacle


def test_headers_alone_are_enough_wherever_they_lie(tmp_path: Path) -> None:
    """As a header that was fetched from far away: the rest of the file is not there."""
    headers = []
    for name, file in (("target.gguf", model()), ("draft.gguf", with_token(3, "x"))):
        path = file.write(tmp_path / name)
        headers.append(read_header(path))
        path.write_bytes(path.read_bytes()[: headers[-1].data_offset])
    target, draft = map(member_of, headers)
    found = judge_members(target, draft)
    assert (found.kind, found.usable) == (VerdictKind.DIFFERS, False)
    assert found.evidence["first"]["id"] == 3
    assert judge_members(target, target).usable
    # On disk such files are incomplete.
    assert compatibility(tmp_path / "target.gguf", tmp_path / "draft.gguf").obstacle is Obstacle.UNREADABLE


def test_a_first_part_far_away_stands_for_all(tmp_path: Path) -> None:
    first = model(entries={"split.count": 2, "split.no": 0}).write(tmp_path / "big-00001-of-00002.gguf")
    whole = read_header(model().write(tmp_path / "whole.gguf"))
    assert judge_members(member_of(read_header(first)), member_of(whole)).usable


def test_a_folder_and_a_file_do_not_go_together(tmp_path: Path) -> None:
    folder = mlx_folder(tmp_path / "mlx", {"a": 0, "b": 1})
    file = model().write(tmp_path / "file.gguf")
    for pair in ((folder, file), (file, folder)):
        found = compatibility(*pair)
        assert (found.kind, found.obstacle) == (VerdictKind.CANNOT, Obstacle.OTHER_FORMAT)
        assert "MLX" in found.reason
        assert "GGUF" in found.reason


def test_folders_are_compared_by_the_same_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {f"w{index}": index for index in range(50)}
    target = mlx_folder(tmp_path / "target", words)
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: False)
    for name, changed, config, kind, fits in (
        ("same", words, {}, VerdictKind.SAME, True),
        ("padded", words, {"vocab_size": 64}, VerdictKind.SAME_PADDED, True),
        ("other", {**{w: i for w, i in words.items() if i != 7}, "x": 7}, {}, VerdictKind.DIFFERS, False),
    ):
        found = compatibility(target, mlx_folder(tmp_path / name, changed, config=config))
        assert (found.kind, found.usable) == (kind, False)
        assert found.obstacle is Obstacle.NO_ENGINE
        assert found.evidence["vocabularies_fit"] is fits
        assert "need mlx-lm" in found.reason
        with monkeypatch.context() as installed:
            installed.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: True)
            found = compatibility(target, tmp_path / name)
        assert (found.kind, found.usable) == (kind, fits)


def test_a_folder_that_cannot_roll_back_is_neither_target_nor_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forespeak.pairing.compatibility.mlx_is_installed", lambda: True)
    plain = mlx_folder(tmp_path / "plain", {"a": 0, "b": 1})
    state = mlx_folder(tmp_path / "state", {"a": 0, "b": 1}, config={"model_type": "qwen3_next"})
    for pair, side, words in (
        ((state, plain), "target", "so drafts cannot be tested"),
        ((plain, state), "draft", "could not be forgotten"),
    ):
        found = compatibility(*pair)
        assert (found.kind, found.obstacle) == (VerdictKind.CANNOT, Obstacle.NO_ROLLBACK)
        assert found.reason.startswith("“state” keeps what it has read")
        assert words in found.reason
        assert (found.evidence["side"], found.evidence["vocabularies_fit"]) == (side, True)


def test_a_folder_without_a_tokenizer_cannot(tmp_path: Path) -> None:
    folder = mlx_folder(tmp_path / "bare", {"a": 0})
    (folder / "tokenizer.json").unlink()
    assert compatibility(folder, folder).obstacle is Obstacle.NO_VOCABULARY
