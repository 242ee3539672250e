"""Prints the lowest versions that setup.cfg declares, as constraints for pip.

python .ci/lowest.py > lowest.txt && pip install --constraint=lowest.txt ".[test]"
"""

import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]


def lowest(requirements: str) -> list[str]:
    """`name>=1.2,<2` -> `name==1.2`, for every line that has a lower end."""
    found = re.findall(r"^\s*([\w.-]+)>=([\d.]+)", requirements, re.M)
    return [f"{name}=={version}" for name, version in found]


if __name__ == "__main__":
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    print("\n".join(lowest(parser["options"]["install_requires"])))
