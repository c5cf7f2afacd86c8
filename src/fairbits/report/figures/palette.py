"""The colours of the report: few, told apart by people who see red and green alike, with a dark counterpart each.

A picture is drawn in the light colours. Inside a page each of them becomes a CSS variable, so that the page may choose.
"""

from __future__ import annotations

#: name → (light, dark). Text colours have a contrast of at least 4.5 to the ground in both.
COLOURS = {
    "ground": ("#ffffff", "#12161d"),
    "panel": ("#f5f7fa", "#1a2029"),
    "ink": ("#1b2330", "#e8ecf2"),
    "muted": ("#566273", "#a3afbf"),
    "rule": ("#d8dee7", "#323c4a"),
    "blue": ("#1f5fa8", "#7fb2ea"),
    "orange": ("#b4470e", "#f0995c"),
    "grey": ("#8b97a8", "#6f7c8e"),
    "band": ("#e9eef5", "#242c38"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
INK, MUTED, RULE, BLUE, ORANGE, GREY, BAND, GROUND = (
    LIGHT[name] for name in ("ink", "muted", "rule", "blue", "orange", "grey", "band", "ground")
)
#: Low scores orange, high ones blue, the threshold pale. The same on light and dark ground, like a photograph.
SCORES = ("#8a3206", "#c8692b", "#eec9ab", "#f6f5f2", "#b9d0e8", "#4f8ac6", "#174a86")
#: On the cells of a heat map.
ON_PALE, ON_DEEP = "#15181d", "#fefefe"


def variables() -> list[str]:
    """The light set and the dark set as CSS variables."""
    return [
        " ".join(f"--{name}: {pair[side]};" for name, pair in COLOURS.items()) + f" color-scheme: {scheme};"
        for side, scheme in ((0, "light"), (1, "dark"))
    ]


def stylesheet() -> str:
    """Both sets: by the reader's system, and by the page's own switch."""
    light, dark = variables()
    return (
        f":root {{ {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-look=light]) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-look=dark] {{ {dark} }} }}\n"
    )
