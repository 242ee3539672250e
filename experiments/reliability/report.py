"""`docs/reliability.md` from the figures in `docs/reliability.json`."""

from collections.abc import Callable, Mapping

INTRODUCTION = """\
# Reliability

Faults tried on real training processes by `python -m experiments.reliability` (`--only=killed,…`
for some of them), which wrote this page and the figures beside it, `reliability.json`. The runs are
tiny (ResNet10 with 4 base channels, 8×8 Spirographs, a checkpoint every three steps), so that they
spend most of their time in the dangerous parts: starting, saving and ending. `make test-slow` tries
every family in small numbers.

A fault is survived if the run ends as if it had not happened, bit for bit unless the section says
otherwise; or, if a run has to stop, if it stops with an error message and loses nothing.

| Faults | Tried | Survived | Lost | Made by |
|---|---|---|---|---|
"""


def page(families: Mapping[str, Mapping]) -> str:
    """The whole page.

    Args:
      families: family -> `figures` and where they come from, as the JSON file holds them.
    """
    rows, sections = [], []
    for name, (title, explain) in SECTIONS.items():
        if name not in families:
            continue
        record, figures = families[name], families[name]["figures"]
        rows.append(
            f"| [{title}](#{title.lower().replace(' ', '-')}) | {figures['tried']} | "
            f"{figures['survived']} | {figures['lost']} | {record['code_version']} |\n"
        )
        sections.append(f"\n## {title}\n\n{explain(figures)}\n")
    return INTRODUCTION + "".join(rows) + "".join(sections)


def _killed(f: Mapping) -> str:
    return f"""\
SIGKILL at {f["tried"]} random moments: while starting, while stepping, and while a checkpoint was
being written ({f["while_checkpointing"]} of them left an unfinished one behind). Each
restart must resume from the newest complete checkpoint ({f["wrong_resumes"]} did not), the final
state must match an undisturbed run bit for bit, and no unfinished checkpoint may remain at the end
({f["left_unfinished"]} did)."""


def _preempted(f: Mapping) -> str:
    return f"""\
SIGTERM at {f["tried"]} random steps: the run saves a checkpoint of its current step, exits with
code 143 (128 + 15) and, when restarted, ends with the same bits. From signal to exit it took at
most {f["slowest_seconds_from_signal_to_exit"]:.1f} s. A signal that arrives while the first step is
being compiled waits for the compiler; an earlier one ends the run at once, with nothing to save."""


def _disk(f: Mapping) -> str:
    outcomes = "\n".join(f"- {name}: {outcome}" for name, outcome in f["faults"].items())
    return f"""\
A run that has checkpoints is resumed where it cannot write. It must stop with code 1 and an error
message, without a traceback; earlier checkpoints must stay unchanged; once there is space, the same
command must end with the bits of an undisturbed run.

{outcomes}

The full disk is a small in-memory file system; it is tried only if the user may mount one."""


def _damage(f: Mapping) -> str:
    return f"""\
Every file of a checkpoint in turn is removed, cut in half, emptied, given a flipped bit or swapped
with another; parts and whole checkpoints are swapped with those of another step. {f["refused"]} of
{f["tried"]} were refused with an error message; {f["intact"]} still gave what was saved (reading
does not need those files). Training skips a damaged checkpoint with a warning and resumes from the
one before."""


def _weights(f: Mapping) -> str:
    return f"""\
Files for `load_torch`: a safetensors file and one as `torch.save` writes it are cut at random
lengths and given flipped bits, headers say what is not so, and {f["calls"]} pickles call a function
that would create a file. {f["refused"]} of {f["tried"]} were refused with an error message,
{f["intact"]} still gave the weights that were saved, and no file was created. Flipped bits inside
the numbers of a safetensors file are not tried: nothing in that format reveals them."""


def _imports(f: Mapping) -> str:
    return f"""\
The configuration of a checkpoint names other code as its encoder or transform, also inside the
options of one of ours, while a module of that name lies in the workdir and on Python's path.
`load_encoder` must refuse each of {f["tried"]} with an error message, import nothing and run
nothing."""


def _pictures(f: Mapping) -> str:
    return f"""\
One picture of a streamed folder is broken in {f["breaks"]} ways (cut, emptied, text, noise, 16
bits, a decompression bomb), and two epochs are streamed, with threads and with worker processes.
With `on_error=refuse` the stream must end with an error message that names the file; with `skip`
all batches must come, another picture of its class in its place, every other picture unchanged and
the file named once."""


def _devices(f: Mapping) -> str:
    counts = " → ".join(map(str, f["counts"]))
    return f"""\
{counts} devices, changed after steps 7 and 14 of 20, against one device throughout. In float64 the
largest difference is {f["difference_float64"]:.1e} of the array's largest entry (1e-9 is allowed).
In float32 the number of devices changes the order of sums, and training propagates the difference:
{f["difference_float32"]:.1e} after 20 steps on {f["counts"][0]} devices. Identical bits are
promised only for the same number of devices."""


def _determinism(f: Mapping) -> str:
    return f"""\
The same seed on the same machine, {f["tried"]} more times: same final bits, same logged metrics.
They depend on the number of devices and on the number of CPU cores that the process may use,
because XLA splits sums between threads: a scheduler that takes a core away between two starts
changes the last digits of float32."""


def _processes(f: Mapping) -> str:
    equal = ", ".join(
        f"{difference:.1e} with {count}"
        for count, difference in f["difference_from_one_process"].items()
    )
    kills = "\n".join(
        f"- process {kill['killed']} of {kill['processes']} killed: the others ended "
        f"{'with an error' if kill['ended_with_an_error'] else 'WITHOUT an error'} after "
        f"{kill['seconds_until_all_had_ended']:.1f} s; after a restart the difference at the end "
        f"is {kill['difference']:.1e}"
        for kill in f["killed"]
    )
    return f"""\
Four devices in several processes over `jax.distributed` on the loopback, against one process, in
float64: the largest difference is {equal} processes (1e-9 is allowed).

{kills}
- SIGTERM to one process: all saved the same step and exited with codes
{" and ".join(map(str, f["stopped"]["codes"]))}; after a restart the difference at the end is
{f["stopped"]["difference"]:.1e}"""


def _soak(f: Mapping) -> str:
    memory, files = f["memory_mb_first_and_last"], f["open_files_first_and_last"]
    plain = f["without_checkpoints"]
    return f"""\
{f["minutes"]:.0f} minutes, {f["steps"]} steps, {f["checkpoints"]} checkpoints. Leaving out the
first fifth, memory went from {memory[0]:.0f} to {memory[1]:.0f} MB (slope
{f["memory_mb_per_hour"]:.1f} MB per hour over {f["looks"]} samples) and open files from {files[0]}
to {files[1]} (slope {f["open_files_per_hour"]:.1f} per hour, never more than
{f["open_files_largest"]}). That is {f["memory_kb_per_checkpoint"]:.0f} KB per checkpoint. A run of
{plain["minutes"]:.0f} minutes and {plain["steps"]} steps without checkpoints had a slope of
{plain["memory_mb_per_hour"]:.1f} MB per hour; below zero, the system reclaimed idle pages."""


SECTIONS: dict[str, tuple[str, Callable[[Mapping], str]]] = {
    "killed": ("Killed at any moment", _killed),
    "preempted": ("Preempted", _preempted),
    "disk": ("Disk full or read-only", _disk),
    "damage": ("Damaged checkpoints", _damage),
    "weights": ("Hostile files of weights", _weights),
    "imports": ("Hostile names in checkpoints", _imports),
    "pictures": ("Broken pictures in streams", _pictures),
    "devices": ("Other numbers of devices", _devices),
    "determinism": ("Same seed again", _determinism),
    "processes": ("Several processes", _processes),
    "soak": ("A soak", _soak),
}
