"""What a release needs beside the code: the recipe asks for what the package does, and versions agree."""

import re
import tomllib
from pathlib import Path

import yaml

import fairbits
from tools.lowest import constraints

HOME = Path(__file__).parents[1]


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((HOME / "conda" / "recipe.yaml").read_text())
    asked = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]["dependencies"]
    listed = [line.replace(" ", "") for line in recipe["requirements"]["run"] if not line.startswith("python")]
    assert listed == asked
    assert recipe["context"]["version"] == fairbits.__version__


def test_citation_and_lowest_versions():
    citation = yaml.safe_load((HOME / "CITATION.cff").read_text())
    assert str(citation["version"]) == fairbits.__version__
    assert all(re.fullmatch(r"[a-z0-9-]+==[\d.]+", line) for line in constraints(HOME / "pyproject.toml"))


def test_a_versions_changes_take_two_pages_at_most():
    text = (HOME / "CHANGELOG.md").read_text()
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        assert len(section.splitlines()) <= 120, section[:40]


def test_types_are_checked_in_all_of_the_source() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["mypy"]["files"] == ["src"]
