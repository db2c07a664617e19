from __future__ import annotations

from pathlib import Path

import pytest

from forespeak.models.gguf import read_header
from forespeak.models.vocabulary import Vocabulary, read_vocabulary
from forespeak.pairing.tokens import is_padding, is_same_symbol, named, shares_role
from models.gguf_writer import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, ModelFile


def one(folder: Path, text: str, kind: int = NORMAL, model: str = "gpt2", **settings: int) -> Vocabulary:
    """A vocabulary whose token 1 is the one that counts."""
    file = ModelFile(["x", text, "z"], [NORMAL, kind, NORMAL], model=model, settings=dict(settings))
    return read_vocabulary(read_header(file.write(folder / "one.gguf")))


@pytest.mark.parametrize(
    ("text", "kind", "padding"),
    [
        ("[PAD151936]", USER_DEFINED, True),
        ("<|extra_12|>", CONTROL, True),
        ("<unused7>", NORMAL, True),
        ("<|reserved_special_token_0|>", CONTROL, True),
        ("<|placeholder3|>", CONTROL, True),
        ("[EMPTY_5]", NORMAL, True),
        ("anything", UNUSED, True),
        ("<tool_call>", USER_DEFINED, False),
        ("<extra_id_0>", CONTROL, False),
        ("<SPECIAL_10>", CONTROL, False),
        ("pad", NORMAL, False),
        ("[PAD]", NORMAL, False),
        ("say [PAD7]", NORMAL, False),
    ],
)
def test_padding(tmp_path: Path, text: str, kind: int, padding: bool) -> None:
    assert is_padding(one(tmp_path, text, kind), 1) is padding


def test_padding_by_number(tmp_path: Path) -> None:
    assert is_padding(one(tmp_path, "<pad>", CONTROL, padding_token_id=1), 1)
    assert not is_padding(one(tmp_path, "<|endoftext|>", CONTROL, padding_token_id=1), 1)
    assert not is_padding(one(tmp_path, "[PAD7]", CONTROL, eos_token_id=1), 1)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (("<tool_call>", CONTROL), ("<tool_call>", USER_DEFINED), True),
        (("<tool_call>", CONTROL), ("<tool_call>", NORMAL), True),
        (("foo", CONTROL), ("foo", NORMAL), False),
        (("foo", USER_DEFINED), ("foo", NORMAL), True),
        (("Ġfoo", USER_DEFINED), ("Ġfoo", NORMAL), False),
        (("<0x0A>", BYTE), ("<0x0A>", NORMAL), False),
        (("<unk>", UNKNOWN), ("<unk>", CONTROL), True),
    ],
)
def test_same_name_other_type(tmp_path: Path, ours: tuple[str, int], theirs: tuple[str, int], same: bool) -> None:
    target, draft = one(tmp_path, *ours), one(tmp_path, *theirs)
    assert is_same_symbol(target, draft, 1) is same
    assert is_same_symbol(draft, target, 1) is same


def test_roles(tmp_path: Path) -> None:
    end = one(tmp_path, "</s>", CONTROL, eos_token_id=1)
    assert shares_role(end, one(tmp_path, "<|im_end|>", CONTROL, eos_token_id=1, eot_token_id=2), 1)
    assert shares_role(end, one(tmp_path, "<|im_end|>", CONTROL, eos_token_id=0), 1)  # it ends turns, by its name
    assert not shares_role(end, one(tmp_path, "<s>", CONTROL, bos_token_id=1), 1)
    assert not shares_role(end, one(tmp_path, "word", NORMAL, eos_token_id=1), 1)
    assert not shares_role(one(tmp_path, "a", CONTROL), one(tmp_path, "b", CONTROL), 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ġfoo", "token 1 “ foo”"),
        ("Ċ", "token 1 “\\n”"),
        ("ä½", "token 1 “\\xe4\\xbd”"),
        ("x" * 60, f"token 1 “{'x' * 39}…”"),
        ("<|a\u202eb|>", "token 1 “<|a\\u202eb|>”"),
    ],
)
def test_names_for_people(tmp_path: Path, text: str, shown: str) -> None:
    assert named(one(tmp_path, text), 1) == shown
