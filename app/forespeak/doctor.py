"""What `forespeak doctor` finds on this machine: versions, devices, folders, memory, and what stands in the way."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import textwrap
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from forespeak import __version__
from forespeak.compare.machine import processor_name
from forespeak.engines.device_list import EngineFacts, engine_facts
from forespeak.engines.gpu_advice import gpu_advice
from forespeak.engines.machine_gpus import surroundings
from forespeak.engines.mlx_facts import mlx_facts
from forespeak.errors import UserFacingError
from forespeak.models.library_settings import users_folders
from forespeak.models.starter import check_starter


def findings() -> dict[str, Any]:
    """Everything that is known, ready for JSON. Sizes in bytes."""
    facts = engine_facts()
    return {
        "versions": {
            "forespeak": __version__,
            "python": platform.python_version(),
            "qt": _version_of("PySide6-Essentials"),
            "llama-cpp-python": _version_of("llama-cpp-python"),
            "llama.cpp": facts.version,
            "llama.cpp commit": _llama_cpp_commit(),
            "numpy": _version_of("numpy"),
            "system": platform.platform(),
        },
        "engine": _engine(facts),
        "gpus": _gpus(facts),
        "mlx": _mlx(),
        "machine": _machine(),
        "folders": _folders(),
        "starter": _starter(),
        "window": _window(),
    }


def report(found: dict[str, Any]) -> str:
    """The findings as lines for people."""
    lines: list[str] = []
    section = partial(_section, lines)
    section("Versions", {name: value or "not known" for name, value in found["versions"].items()})
    _add_devices(lines, found)
    mlx = found["mlx"]
    versions = {"versions": f"mlx {mlx['mlx']}, mlx-lm {mlx['mlx_lm']}"} if mlx["mlx"] and mlx["mlx_lm"] else {}
    section("MLX", {"state": mlx["words"], **versions})
    machine = found["machine"]
    section(
        "Machine",
        {
            "processor": f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads",
            "load": ", ".join(f"{load:.1f}" for load in machine["load"]),
            "memory": f"{_size(machine['memory_free_bytes'])} free of {_size(machine['memory_bytes'])}",
        },
    )
    section(
        "Folders",
        {name: f"{folder['path']} ({_size(folder['free_bytes'])} free)" for name, folder in found["folders"].items()},
    )
    starter = found["starter"]
    section(
        "Starter model",
        {"state": starter["state"], **({"problem": starter["problem"]} if "problem" in starter else {})},
    )
    section("Window", {"state": found["window"]["problem"] or "can open"})
    return "\n".join(lines).rstrip()


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _llama_cpp_commit() -> str | None:
    """The commit that the engine was built from, if its build left a note of it."""
    spec = importlib.util.find_spec("llama_cpp")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        note = Path(folder) / "lib" / "cmake" / "llama" / "llama-config.cmake"
        try:
            found = re.search(r"LLAMA_BUILD_COMMIT\s+(\w+)", note.read_text(encoding="utf-8"))
        except OSError:
            continue
        if found:
            return found[1]
    return None


def _engine(facts: EngineFacts) -> dict[str, Any]:
    if facts.problem is not None:
        return {"problem": facts.problem}
    return {
        "version": facts.version,
        "build": facts.build,
        "backends": facts.backends,
        "devices": [asdict(device) for device in facts.devices],
    }


def _gpus(facts: EngineFacts) -> dict[str, Any]:
    """What the machine has of GPUs, and why the engine does not use one of them."""
    advice = gpu_advice(facts, surroundings())
    return {
        "found": advice.found,
        "used": advice.used,
        "build": advice.build,
        "reasons": advice.reasons,
        "commands": advice.commands,
    }


def devices() -> dict[str, Any]:
    """The part of the findings that is about devices. Sizes in bytes."""
    facts = engine_facts()
    return {"engine": _engine(facts), "gpus": _gpus(facts)}


def device_report(found: dict[str, Any]) -> str:
    """`devices` as lines for people."""
    lines: list[str] = []
    _add_devices(lines, found)
    return "\n".join(lines).rstrip()


def _add_devices(lines: list[str], found: dict[str, Any]) -> None:
    engine, gpus = found["engine"], found["gpus"]
    if "problem" in engine:
        _section(lines, "Devices", {"problem": engine["problem"]})
    else:
        _section(lines, "Devices", {device["name"]: _device_words(device) for device in engine["devices"]})
    _section(
        lines,
        "GPUs",
        {
            "in this machine": ", ".join(gpus["found"]) or "none was found",
            "used by llama.cpp": ", ".join(gpus["used"]) or "none",
            "llama.cpp is built": gpus["build"],
        },
    )
    # The blank line comes behind what explains the section.
    lines.pop()
    for reason in gpus["reasons"]:
        lines.extend(f"  {line}" for line in textwrap.wrap(reason, 100, break_long_words=False, break_on_hyphens=False))
    lines.extend(f"    {command}" for command in gpus["commands"])
    lines.append("")


def _device_words(device: dict[str, Any]) -> str:
    by = f" by {device['backend']}" if device["backend"] not in {"", device["kind"]} else ""
    free = f"{_size(device['free_bytes'])} free of {_size(device['total_bytes'])}"
    return f"{device['description']}, {device['kind']}{by}, {free}"


def _section(lines: list[str], title: str, entries: dict[str, Any]) -> None:
    width = max(map(len, entries), default=0)
    lines.append(title)
    lines.extend(f"  {name:<{width}}  {value}" for name, value in entries.items())
    lines.append("")


def _mlx() -> dict[str, Any]:
    facts = mlx_facts()
    return asdict(facts) | {"words": facts.words}


def _machine() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    return {
        "cpu": processor_name(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "load": list(psutil.getloadavg()),
        "memory_bytes": memory.total,
        "memory_free_bytes": memory.available,
    }


def _folders() -> dict[str, Any]:
    places = users_folders()
    named = {
        "models": places.models,
        "chats": places.chats.parent,
        "pairs": places.pairs,
        "settings": places.config,
        "cache": places.cache,
        "logs": places.logs,
    }
    return {
        name: {"path": str(path), "exists": path.is_dir(), "free_bytes": _free_bytes(path)}
        for name, path in named.items()
    }


def _starter() -> dict[str, Any]:
    try:
        state = check_starter(users_folders().models)
    except UserFacingError as error:
        return {"state": "not available", "problem": str(error)}
    return {
        "state": state.status.value,
        "draft": str(state.draft),
        "target": str(state.target),
        "bytes_needed": state.bytes_needed,
    }


def _window() -> dict[str, Any]:
    """Whether a window could open; the question itself opens none."""
    from forespeak.ui.app import ui_problem

    problem = ui_problem()
    return {"problem": None if problem is None else str(problem)}


def _free_bytes(folder: Path) -> int | None:
    """Free space where `folder` is or will be made."""
    for place in (folder, *folder.parents):
        if place.exists():
            try:
                return shutil.disk_usage(place).free
            except OSError:
                return None
    return None


def _size(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 1e9:.1f} GB"
