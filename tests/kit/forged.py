"""Files of a checkpoint as somebody makes them who knows the format, digests included."""

import io
import json
import zipfile

import numpy as np

from music_tf.storage.checkpoint import MANIFEST, seal


def reseal(folder, change):  # changes what the manifest of a checkpoint says
    content = json.loads((folder / MANIFEST).read_bytes())["content"]
    change(content)
    (folder / MANIFEST).write_bytes(seal(content))


def saved_array(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def archived(members, compression=zipfile.ZIP_STORED):  # the bytes of an archive of files by name
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()
