"""Finds the model files that a report names, so that it can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forespeak.compare.plan_record import model_names, plan_from, plan_record
from forespeak.errors import UserFacingError
from forespeak.models.library_settings import users_folders

if TYPE_CHECKING:
    from forespeak.compare.lanes import Plan
    from forespeak.compare.store import ComparisonStore


def plan_to_repeat(
    report: Mapping[str, Any],
    store: ComparisonStore,
    starter_files: Callable[[], Sequence[Path]],
    stopped: Callable[[], bool],
) -> Plan:
    """The plan of a report, with the very files that it was measured with. Raises UserFacingError.

    A comparison that was made here is found by its id, private prompts included; otherwise the models are looked for
    in the library, by name, size and SHA-256.
    """
    record = report.get("plan")
    if report.get("schema") != "forespeak-comparison" or not isinstance(record, Mapping):
        raise UserFacingError(
            "This is no report of a comparison.",
            "",
            "Name a JSON file that forespeak compare --json or --report wrote.",
        )
    finder = _Finder(report.get("models") or [], starter_files, stopped)
    stored = store.get(str(report.get("id") or ""))
    if stored is not None and plan_record(stored.plan, folders=False, private=False) == _without_words(record):
        return finder.with_its_files(stored.plan)
    return plan_from(record, finder.path_of)


def _without_words(record: Mapping[str, Any]) -> dict[str, Any]:
    """As a report without private words has it, whatever this one has."""
    prompts = [
        prompt
        if not prompt.get("private")
        else {
            **prompt,
            "text": None,
            "messages": [{**message, "content": None} for message in prompt.get("messages", [])],
        }
        for prompt in record.get("prompts", [])
    ]
    return {**record, "prompts": prompts}


class _Finder:
    def __init__(
        self,
        models: Sequence[Mapping[str, Any]],
        starter_files: Callable[[], Sequence[Path]],
        stopped: Callable[[], bool],
    ) -> None:
        self._models = {model["file"]: model for model in models}
        self._starter_files = starter_files
        self._stopped = stopped

    def path_of(self, name: str) -> Path:
        """The file of a model of the report. Raises UserFacingError."""
        file = self._file_name(name)
        seen = False
        for path in self._candidates(file):
            seen = True
            if self._is_it(path, name):
                return path
        raise UserFacingError(
            f"“{file}” is not on this machine." if not seen else f"“{file}” is another file here.",
            "The report was measured with a model that is not in the library."
            if not seen
            else "Its size or its SHA-256 is not the report's.",
            "Add the folder that holds it to the library, or download it.",
        )

    def with_its_files(self, plan: Plan) -> Plan:
        """A plan with the report's files, wherever they are by now. Raises UserFacingError."""
        found = {
            path: path if path.exists() and self._is_it(path, name) else self.path_of(name)
            for path, name in model_names(plan).items()
        }
        lanes = [lane if lane.draft is None else replace(lane, draft=found[lane.draft]) for lane in plan.lanes]
        return replace(plan, target=found[plan.target], lanes=tuple(lanes))

    def _file_name(self, name: str) -> str:
        """Of a model, which is called `model.gguf (2)` where another one of the report has that file's name."""
        file, _, number = Path(name).name.rpartition(" (")
        return file if file in self._models and number.removesuffix(")").isdecimal() else Path(name).name

    def _candidates(self, name: str) -> Iterator[Path]:
        from forespeak.models.library import users_library

        yield from (path for path in self._starter_files() if path.name == name)
        yield from (item.path for item in users_library().scan(cancelled=self._stopped) if item.path.name == name)

    def _is_it(self, path: Path, name: str) -> bool:
        from forespeak.models.file_hashes import FileHashes

        model = self._models.get(name)
        if model is None:
            return True
        try:
            if model["size_bytes"] is not None and path.is_file() and path.stat().st_size != model["size_bytes"]:
                return False
            hashes = FileHashes(users_folders().models)
            known = {part["file"]: part["sha256"] for part in model["parts"] if part["sha256"]}
            parts = {name: path / name if path.is_dir() else path.with_name(name) for name in known}
            return all(hashes.sha256(parts[name], self._stopped) == digest for name, digest in known.items())
        except OSError:
            return False
