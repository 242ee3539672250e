"""The reference of the front door: every name of `import invclr_jax as ic`."""

import invclr_jax

GROUPS = {
    "Train": ("train", "load_config", "default_config", "writers"),
    "Use": ("load_encoder", "load_torch", "Encoder", "adapt"),
    "Measure": ("evaluate", "Settings", "audit"),
    "Data": ("load_data", "Dataset", "Split"),
    "Transformations": ("Box", "Compose", "frozen"),
}
"""Names in the order of the page; those that are not listed come last."""

HEAD = """# Python

`import invclr_jax as ic`. Names are imported when they are first used.
"""


def groups() -> dict[str, tuple[str, ...]]:
    """Every public name once, by the heading it stands under."""
    listed = {name for names in GROUPS.values() for name in names}
    others = tuple(name for name in invclr_jax.__all__ if name not in listed)
    return {**GROUPS, **({"Others": others} if others else {})}


def page() -> str:
    """The page, with a directive of mkdocstrings for each name."""
    lines = [HEAD]
    for title, names in groups().items():
        lines.append(f"## {title}\n")
        for name in names:
            target = invclr_jax._NAMES[name].replace(":", ".")
            lines.append(f"### `ic.{name}` {{ #ic-{name} }}\n\n::: {target}\n")
    return "\n".join(lines)
