"""Draws docs/assets/rooms.svg from the table of docs/concepts/architecture.md.

python docs/tools/rooms.py
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT, GAP = 720, 34, 14
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" \
aria-label="Rooms of hf_vat in layers; each imports only from rooms below it">
<style>
svg {{ font: 14px system-ui, sans-serif; background: #fff }}
rect {{ fill: #eef1fb; stroke: #3f51b5 }}
text {{ fill: #1a237e; text-anchor: middle }}
line {{ stroke: #666 }}
polygon {{ fill: #666 }}
.note {{ fill: #444; font-size: 12px }}
</style>
{rooms}
<line x1="{arrow}" y1="16" x2="{arrow}" y2="{end}"/>
<polygon points="{left},{end} {right},{end} {arrow},{tip}"/>
<text class="note" transform="translate({note} {middle}) rotate(90)">imports go down</text>
</svg>
"""


def layers() -> list[list[str]]:
    """Names of the rooms from the top layer to the lowest."""
    page = (DOCS / "concepts" / "architecture.md").read_text(encoding="utf-8")
    return [re.findall(r"`(\w+)`", rooms) for rooms in re.findall(r"^\| \d+ \| (.+?) \|", page, re.MULTILINE)]


def draw() -> str:
    drawn, y = [], 10
    for rooms in layers():
        width = (WIDTH - GAP * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            x = 10 + place * (width + GAP)
            drawn.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="6"/>')
            drawn.append(f'<text x="{x + width / 2:.0f}" y="{y + 22}">{room}</text>')
        y += HEIGHT + GAP
    arrow = WIDTH + 32
    ends = {"arrow": arrow, "left": arrow - 4, "right": arrow + 4, "end": y - 32, "tip": y - 22}
    notes = {"note": WIDTH + 50, "middle": y // 2}
    return FRAME.format(width=WIDTH + 70, height=y, rooms="\n".join(drawn), **ends, **notes)


if __name__ == "__main__":
    (DOCS / "assets" / "rooms.svg").write_text(draw(), encoding="utf-8")
