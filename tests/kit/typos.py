"""Mistyped names."""


def typos(names):  # (typo, name): a letter left out, swapped, put in or replaced
    for name in names:
        for at in range(len(name)):
            before, here, after = name[:at], name[at : at + 1], name[at + 1 :]
            edits = {before + after, before + after[:1] + here + after[1:]}
            for letter in "aeinrst_z":
                edits |= {before + letter + here + after, before + letter + after}
            yield from ((typo, name) for typo in sorted(edits) if typo not in names)
