"""Figures of commands that must not change: `python -m tools.golden` compares them with those that are kept.

`tests/golden/figures.json` was made by commit 8268c75, the last one before packages were moved and the search became
one path of tasks, with ``PYTHONPATH=<that commit>/src python -m tools.golden --write``. Every command has a fixed seed
and a budget of evaluations. What has changed on purpose since then is named in `tests/golden/changed.toml`, figure by
figure, with the reason; the tests hold the quick commands, and this tool all of them.
"""
