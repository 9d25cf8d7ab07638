"""Docstrings as mkdocstrings reads them: arguments in transformers' form, and references such as [`~transformers.Trainer`].

Google's style, which the rest is in, has one name per argument and a bare type in the brackets after it.
"""

import re

from griffe import AliasResolutionError, Extension, NameResolutionError, Object

_REFERENCE = re.compile(r"\[`(~?)([\w.]+)`\](?![(\[])")
_LINK = re.compile(r"\[`(\w+)`\]\((hf_vat\.[\w.]+)\)")
_SECTION = re.compile(r"^( *)(?:Args|Attributes):$")
_NAME = r"\w+(?: \((?:[^()]|\([^()]*\))*\))?"
_ITEM = re.compile(rf"^( *)({_NAME}(?:, {_NAME})*):(.*)$")
_TYPE = re.compile(r"`([^`]+)`(?: or `([^`]+)`)?(?:,? ?)(.*)")


class Docstrings(Extension):
    def on_package(self, *, pkg, loader, **kwargs):
        if pkg.name == "hf_vat":
            _rewrite(pkg)


def _rewrite(obj: Object) -> None:
    if obj.docstring:
        text = _one_name_each(obj.docstring.value)
        text = _REFERENCE.sub(lambda match: _reference(obj, match), text)
        obj.docstring.value = _LINK.sub(lambda match: _link(match[1], match[2]), text)
    for member in obj.members.values():
        if not member.is_alias:
            _rewrite(member)


def _reference(obj: Object, match: re.Match) -> str:
    """A link if the name is documented, else the name alone."""
    short, name = match.groups()
    shown = name.rpartition(".")[2] if short else name
    try:
        target = name if "." in name and name.startswith("hf_vat") else obj.resolve(name)
    except (NameResolutionError, AliasResolutionError, KeyError):
        target = next(iter(_public(obj.package, name)), name)
    return _link(shown, target)


def _link(shown: str, target: str) -> str:
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'


def _public(package, name: str) -> list[str]:
    """Paths of a name in the sub-packages that export it."""
    exporting = [module for module in package.modules.values() if not module.is_alias and module.exports]
    return [f"{module.path}.{name}" for module in exporting if name in module.exports]


def _one_name_each(text: str) -> str:
    """Rewrite `a (`str`, *optional*), b: …` into one item for each name, with the bare type in brackets."""
    lines, indent, item = [], None, []

    def close():
        for names, rest in item[:1]:
            for head, note in names:
                lines.extend([f"{head}: {note}{rest[0].strip()}".rstrip(), *rest[1:]])
        item.clear()

    for line in text.splitlines():
        section = _SECTION.match(line)
        inside = indent is not None and (not line.strip() or line.startswith(" " * (indent + 1)))
        if section or not inside:
            close()
            indent = len(section[1]) if section else None
            lines.append(line)
            continue
        match = _ITEM.match(line)
        if match and len(match[1]) == indent + 4:
            close()
            item.append((_heads(match[1], match[2]), [match[3]]))
        elif item:
            item[0][1].append(line)
        else:
            lines.append(line)
    close()
    return "\n".join(lines)


def _heads(margin: str, names: str) -> list[tuple[str, str]]:
    """For each name its line up to the colon, and what the brackets say beside the type."""
    found = re.findall(_NAME, names)
    last = re.search(r" \(.*\)$", found[-1])
    heads = []
    for name in found:
        name, _, given = name.partition(" ")
        kind = _TYPE.fullmatch((given or (last[0].strip() if last else "")).removeprefix("(").removesuffix(")"))
        if kind is None:
            heads.append((f"{margin}{name}", ""))
            continue
        note = kind[3].replace("*optional*", "optional").strip()
        heads.append(
            (
                f"{margin}{name} ({' | '.join(filter(None, kind.groups()[:2]))})",
                note and f"{note[0].upper()}{note[1:]}. ",
            )
        )
    return heads
