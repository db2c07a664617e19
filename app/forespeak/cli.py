"""The command line: every capability without a window."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from forespeak import (
    __version__,
    bench_command,
    compare_command,
    models_command,
    pair_command,
    parity_command,
    self_test_command,
    terminal,
)
from forespeak.draft_arguments import (
    STARTER,
    add_draft_argument,
    add_source_argument,
    drafts_of,
    with_text_sources,
)
from forespeak.engines.collect import collect
from forespeak.engines.engine import (
    ChatMessage,
    ConversionRequest,
    Engine,
    GenerationRequest,
    Loaded,
    LoadRequest,
    Progress,
    Role,
)
from forespeak.errors import UserFacingError
from forespeak.load_arguments import add_load_arguments, load_settings
from forespeak.models.folders import folders
from forespeak.models.gguf import read_header
from forespeak.models.library_settings import users_folders
from forespeak.models.starter import StarterStatus, check_starter, starter_draft_path
from forespeak.reply import problems_of, record
from forespeak.sampling_arguments import add_sampling_arguments, whole, with_sampling, with_token_biases
from forespeak.speculation.settings import Rule
from forespeak.speculation.trace import FinishReason, Source

LOG_NAME = "forespeak.log"


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line and return the exit code. Nothing is raised."""
    _speak_utf8()
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        code = command(options)
        sys.stdout.flush()
    except SystemExit as leaving:
        # argparse: --help, --version, and arguments that make no sense.
        return leaving.code if isinstance(leaving.code, int) else terminal.MENDABLE
    except UserFacingError as error:
        terminal.say_error(error)
        return terminal.MENDABLE
    except BrokenPipeError:
        # Whoever read our output has had enough. The interpreter's own last flush must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return terminal.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place where a bug can be told kindly
        return _report_bug(error)
    return code


def _speak_utf8() -> None:
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        # Some hosts put plain text streams in their place, or none.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _report_bug(error: Exception) -> int:
    """A short word on stderr; the traceback goes to the log."""
    terminal.say(f"forespeak: this should not have happened ({type(error).__name__}). It is a mistake in Forespeak.")
    log = folders().logs / LOG_NAME
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now().astimezone().isoformat()} forespeak {__version__}, command line\n")
            file.writelines(traceback.format_exception(error))
    except OSError as failure:
        terminal.say(f"It could not be written to {log}: {failure.strerror or failure}.")
    else:
        terminal.say(f"What is known about it stands in {log}.")
    return terminal.FAULT


# The arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="forespeak",
        description="Chat with local language models and see their speculation. Without arguments, the window opens; "
        "with a GGUF file alone, it opens with that model.",
    )
    parser.add_argument("--version", action="version", version=f"forespeak {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_chat(commands.add_parser("chat", help="chat in the terminal, or answer one prompt", description=_chat.__doc__))
    models = bench_command.Models(_engine, _target_path, _draft_path)
    bench_command.add_to(commands, models)
    compare_command.add_to(commands, models)
    parity_command.add_to(commands, models)
    pair_command.add_to(commands, models)
    models_command.add_to(commands)
    self_test_command.add_to(commands, models)
    devices = commands.add_parser(
        "devices", help="what models can be computed on, and why not on a GPU", description=_devices.__doc__
    )
    devices.add_argument("--json", action="store_true", help="machine-readable")
    devices.set_defaults(command=_devices)
    doctor = commands.add_parser("doctor", help="what is installed, found and free here", description=_doctor.__doc__)
    doctor.add_argument("--json", action="store_true", help="machine-readable")
    doctor.set_defaults(command=_doctor)
    return parser


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_chat, fail=parser.error)
    add = parser.add_argument
    add("-p", "--prompt", metavar="PROMPT", help="answer this and leave; - reads it from standard input")
    add("--system", metavar="PROMPT", help="the system prompt")
    add("--json", action="store_true", help="print the reply as JSON: text, tokens with their origin, steps, counts")

    models = parser.add_argument_group("models").add_argument
    models("--target", default=STARTER, metavar="GGUF", help="a GGUF file, or starter (the default)")
    add_draft_argument(models)
    add_load_arguments(models)

    speculation = parser.add_argument_group("speculation").add_argument
    speculation("--no-speculation", action="store_true", help="the target alone")
    speculation("--draft-tokens", type=whole(0), metavar="K", help="tokens of a draft; as many as pay, if not given")
    add_source_argument(speculation)
    speculation(
        "--rule",
        choices=[rule.value for rule in Rule],
        default=Rule.COUPLED.value,
        help="coupled (the default): speculation never changes the words; "
        "rejection: more drafts are accepted, the words vary with the draft",
    )

    add_sampling_arguments(parser)


def _request(options: argparse.Namespace) -> GenerationRequest:
    request = GenerationRequest(
        messages=(), sources=_sources(options), rule=Rule(options.rule), draft_length=options.draft_tokens
    )
    return with_sampling(with_text_sources(request, options), options)


def _prompt(options: argparse.Namespace) -> str | None:
    """The one prompt to answer; None for a chat."""
    prompt: str | None = options.prompt
    if prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise UserFacingError(
                "The prompt on standard input cannot be read.", f"It is not UTF-8 text: {error}.", "Convert it first."
            ) from error
    elif prompt is not None and not _is_text(prompt):
        raise UserFacingError("The prompt cannot be read.", "It is not UTF-8 text.", "Convert it first.")
    if prompt is not None and not prompt.strip():
        raise UserFacingError("The prompt is empty.", "", "Write something after -p.")
    return prompt


def _is_text(argument: str) -> bool:
    """Whether an argument's bytes were UTF-8; others arrive as lone surrogates."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# forespeak chat


def _chat(options: argparse.Namespace) -> int:
    """Chat in the terminal with tokens in the colour of their origin, or answer one prompt and leave."""
    request = _request(options)
    if options.json and options.prompt is None:
        options.fail("argument --json: give the prompt with -p")
    prompt = _prompt(options)
    engine = _engine()
    try:
        loaded = _load(engine, options)
        if loaded.draft is None:
            request = replace(request, sources=tuple(s for s in request.sources if not s.uses_model))
        request = with_token_biases(request, options, loaded)
        if prompt is not None:
            return _answer(engine, loaded, _with_prompt(request, options.system, prompt), as_json=options.json)
        chat = terminal.TerminalChat(engine, request, options.system)
        if options.no_speculation:
            chat.start_without_speculation()
        chat.run()
    finally:
        engine.close()
    return 0


def _engine() -> Engine:
    # Imported late: --help and wrong arguments need not wait for llama.cpp.
    from forespeak.engines.by_format import EngineByFormat
    from forespeak.pairing.compatibility import Judge
    from forespeak.pairing.load_plan import choose_layers
    from forespeak.pairing.pair_memory import PairFiles

    where = folders()
    return EngineByFormat(Judge(where.cache / "verdicts").refusal, PairFiles(where.pairs), choose_layers)


def _sources(options: argparse.Namespace) -> tuple[Source, ...]:
    drafts = drafts_of(options)
    return () if options.no_speculation and options.prompt is not None else drafts.sources


def _load(engine: Engine, options: argparse.Namespace) -> Loaded:
    """Load the pair, with progress on stderr. Raises UserFacingError; KeyboardInterrupt if Ctrl+C stopped it."""
    from forespeak.pairing.load_plan import see_that_it_fits

    draft = drafts_of(options).model if Source.DRAFT_MODEL in _sources(options) else None
    with terminal.Interrupt() as interrupt, terminal.ProgressLine() as progress:
        target = _target_path(options.target, engine, progress.show, interrupt.asked)
    request = LoadRequest(target, None if draft is None else _draft_path(draft), load_settings(options))
    see_that_it_fits(request, anyway=options.load_anyway, ask=terminal.asker())
    with terminal.Interrupt() as interrupt, terminal.ProgressLine() as progress:
        loaded = engine.load(request, progress.show, interrupt.asked)
    if loaded is None:
        raise KeyboardInterrupt
    for problem in problems_of(loaded):
        terminal.say(problem)
    return loaded


def _target_path(
    name: str, engine: Engine, progress: Callable[[Progress], None], cancelled: Callable[[], bool]
) -> Path:
    """A file, or the starter's target, which is unpacked the first time."""
    if name != STARTER:
        return _whole_model(Path(name).expanduser())
    state = check_starter(users_folders().models)
    if state.status is StarterStatus.MUST_BE_UNPACKED:
        unpacked = engine.convert(ConversionRequest(state.draft, state.target), progress, cancelled)
        if unpacked is None:
            raise KeyboardInterrupt
    return state.target


def _whole_model(path: Path) -> Path:
    """The path, if a model's weights are all there: our reader says in plainer words what is wrong than llama.cpp."""
    # A folder is a model in the MLX format, and its engine looks at it by itself.
    if not path.is_dir() and read_header(path).is_vocabulary_only:
        raise UserFacingError(
            f"“{path.name}” cannot write anything.",
            "It holds a vocabulary but no weights.",
            "Choose the whole model's file.",
        )
    return path


def _draft_path(name: str) -> Path:
    if name != STARTER:
        return Path(name).expanduser()
    # Where the package is missing, the check says so.
    return starter_draft_path() or check_starter(users_folders().models).draft


def _with_prompt(request: GenerationRequest, system: str | None, prompt: str) -> GenerationRequest:
    messages = [ChatMessage(Role.SYSTEM, system)] if system else []
    return replace(request, messages=(*messages, ChatMessage(Role.USER, prompt)))


def _answer(engine: Engine, loaded: Loaded, request: GenerationRequest, *, as_json: bool) -> int:
    """Answer one prompt on stdout: the text as it comes, or all of it as JSON."""
    painter = terminal.Painter.of(sys.stdout)
    with terminal.Interrupt() as interrupt:
        reply = collect(engine.generate(request, interrupt.asked), None if as_json else painter.step)
    if as_json:
        json.dump(record(reply, loaded), sys.stdout, ensure_ascii=False, indent=1)
    painter.write("\n")
    if not as_json:
        terminal.say_outcome(reply, speculating=bool(request.sources))
    return terminal.INTERRUPTED if reply.reason is FinishReason.CANCELLED else 0


# forespeak doctor


def _doctor(options: argparse.Namespace) -> int:
    """What is installed, found and free on this machine."""
    from forespeak import doctor

    found = doctor.findings()
    print(json.dumps(found, ensure_ascii=False, indent=1) if options.json else doctor.report(found))
    return 0


def _devices(options: argparse.Namespace) -> int:
    """The devices that --device takes, the GPUs of this machine, and why one of them is not used."""
    from forespeak import doctor

    found = doctor.devices()
    print(json.dumps(found, ensure_ascii=False, indent=1) if options.json else doctor.device_report(found))
    return 0
