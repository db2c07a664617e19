"""What `forespeak doctor` finds on this machine: versions, devices, folders, memory, and what stands in the way."""

from __future__ import annotations

import importlib.util
import multiprocessing
import platform
import re
import shutil
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from forespeak import __version__
from forespeak.compare.machine import processor_name
from forespeak.errors import UserFacingError
from forespeak.models.folders import folders
from forespeak.models.starter import check_starter

_ANSWER_SECONDS = 60.0
"""Loading a GPU's driver can take a while; a driver that hangs must not hang us."""


def findings() -> dict[str, Any]:
    """Everything that is known, ready for JSON. Sizes in bytes."""
    engine = _ask_llama_cpp()
    return {
        "versions": {
            "forespeak": __version__,
            "python": platform.python_version(),
            "qt": _version_of("PySide6-Essentials"),
            "llama-cpp-python": _version_of("llama-cpp-python"),
            "llama.cpp": engine.get("version"),
            "llama.cpp commit": _llama_cpp_commit(),
            "numpy": _version_of("numpy"),
            "system": platform.platform(),
        },
        "engine": engine,
        "machine": _machine(),
        "folders": _folders(),
        "starter": _starter(),
        "window": _window(),
    }


def report(found: dict[str, Any]) -> str:
    """The findings as lines for people."""
    lines = []

    def section(title: str, entries: dict[str, Any]) -> None:
        width = max(map(len, entries), default=0)
        lines.append(title)
        lines.extend(f"  {name:<{width}}  {value}" for name, value in entries.items())
        lines.append("")

    section("Versions", {name: value or "not known" for name, value in found["versions"].items()})
    engine, machine = found["engine"], found["machine"]
    if "problem" in engine:
        section("Devices", {"problem": engine["problem"]})
    else:
        section(
            "Devices",
            {
                device["name"]: f"{device['description']}, {device['kind']}, {_size(device['total_bytes'])}"
                for device in engine["devices"]
            },
        )
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


def _ask_llama_cpp() -> dict[str, Any]:
    """What llama.cpp sees, asked in a child process: native code may abort, and doctor has to live on."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_describe_llama_cpp, args=(theirs,), daemon=True)
    child.start()
    theirs.close()
    answer: dict[str, Any]
    try:
        answer = ours.recv() if ours.poll(_ANSWER_SECONDS) else {"problem": "llama.cpp did not answer in a minute."}
    except EOFError:
        child.join(1.0)
        answer = {"problem": f"llama.cpp ended its process (exit code {child.exitcode})."}
    finally:
        ours.close()
        child.terminate()
        child.join()
    return answer


def _describe_llama_cpp(answer: Connection) -> None:
    try:
        from forespeak.engines.llamacpp import bindings

        answer.send(
            {
                "version": bindings.version(),
                "build": bindings.system_info().strip(" |"),
                "devices": [
                    {
                        "name": device.name,
                        "description": device.description,
                        "kind": device.kind,
                        "free_bytes": device.free_bytes,
                        "total_bytes": device.total_bytes,
                    }
                    for device in bindings.devices()
                ],
            }
        )
    except (ImportError, OSError, RuntimeError) as error:
        answer.send({"problem": f"llama.cpp could not be loaded: {error}"})


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
    places = folders()
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
        state = check_starter(folders().models)
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
