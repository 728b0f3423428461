"""How well photos that look alike are told from others: run by hand, on a folder of photos. Not collected by pytest.

    python tests/measure_similar.py PHOTOS             animed's fingerprint: hits and false hits, by distance
    python tests/measure_similar.py PHOTOS --hashes    the hashes that one can choose from, whole photos only
    python tests/measure_similar.py --lookup 100000    a look for the nearest among so many

Hits: each photo against copies of itself (saved again, resized, cropped). False hits: each photo and each copy against
all other photos.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import imagehash
import numpy as np
from PIL import Image

from animed.config import InboxConfig
from animed.imaging import fingerprint
from animed.records import Fingerprint
from animed.schedule.likeness import TINT, Looks, same_details

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    Copies = dict[str, Fingerprint | None]

DEFAULT: Final[int] = InboxConfig.model_fields["similar_distance"].default
MOST: Final = 100  # bits: what `similar_distance` may be
BEYOND: Final = 999  # bits: not comparable
EXTRA: Final = frozenset({"one side 5 %", "corner 5 %", "grey"})  # told, but not what the default is made for
HASHES: Final[Mapping[str, Callable[[Image.Image, int], Any]]] = {
    "phash": lambda picture, size: imagehash.phash(picture, hash_size=size),
    "dhash": lambda picture, size: imagehash.dhash(picture, hash_size=size),
    "ahash": lambda picture, size: imagehash.average_hash(picture, hash_size=size),
    "whash": lambda picture, size: imagehash.whash(picture, hash_size=size, mode="haar"),
}


def copies(picture: Image.Image, seed: str) -> Iterator[tuple[str, Image.Image]]:
    """Yield what becomes of photos on their way through chat programs, clouds and editors."""
    chance, (width, height) = random.Random(seed), picture.size
    for quality in (60, 75, 90):
        yield f"jpeg {quality}", saved(picture, "JPEG", quality)
    yield "webp 75", saved(picture, "WEBP", 75)
    yield "png to jpeg 85", saved(saved(picture, "PNG", 0), "JPEG", 85)
    for part in (2, 4):
        small = picture.resize((max(1, width // part), max(1, height // part)), Image.Resampling.LANCZOS)
        yield f"1/{part}", saved(small, "JPEG", 85)
    for edge in (640, 320):
        thumbnail = picture.copy()
        thumbnail.thumbnail((edge, edge))
        yield f"thumbnail {edge}", saved(thumbnail, "JPEG", 80)
    for percent in (2, 3, 4, 5):
        yield f"crop {percent} %", saved(cropped(picture, [percent / 100] * 4), "JPEG", 90)
    yield "crop 2-5 %", saved(cropped(picture, [chance.uniform(0.02, 0.05) for _ in range(4)]), "JPEG", 85)
    side = chance.randrange(4)
    yield "one side 5 %", saved(cropped(picture, [0.05 * (number == side) for number in range(4)]), "JPEG", 90)
    yield "corner 5 %", saved(cropped(picture, [0.05, 0.05, 0, 0]), "JPEG", 90)
    yield "grey", picture.convert("L").convert("RGB")


def saved(picture: Image.Image, form: str, quality: int) -> Image.Image:
    """Save a picture and read it again."""
    target = io.BytesIO()
    picture.save(target, form, quality=quality)
    return Image.open(target).convert("RGB")


def cropped(picture: Image.Image, cuts: list[float]) -> Image.Image:
    """Cut these parts off left, top, right and bottom."""
    width, height = picture.size
    left, top, right, bottom = cuts
    return picture.crop(
        (round(width * left), round(height * top), round(width * (1 - right)), round(height * (1 - bottom)))
    )


def looks(path: Path) -> Copies:
    """Return the fingerprints of a photo and of its copies."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    made = {"photo": picture, **dict(copies(picture, path.name))}
    return {kind: fingerprint.of(np.asarray(one)) for kind, one in made.items()}


def hashes(path: Path, *, name: str, size: int) -> dict[str, list[bool]]:
    """Return one kind of hash of a photo and of its copies."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    made = {"photo": picture, **dict(copies(picture, path.name))}
    return {kind: HASHES[name](one, size).hash.flatten().tolist() for kind, one in made.items()}


def words(values: list[int]) -> NDArray[np.uint64]:
    """Return (N, 4) words of N hashes."""
    return np.array([list(np.frombuffer(value.to_bytes(32), np.uint64)) for value in values])


def bits(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return (N, M) distances."""
    apart: NDArray[np.int32] = np.bitwise_count(one[:, None] ^ other[None]).sum(2, dtype=np.int32)
    return apart


def distances(rows: list[Copies], kind: str) -> NDArray[np.int32]:
    """Return (N, N) distances of the copies of a kind to all photos, as animed's index has them."""
    known = [(row[kind] or Fingerprint(0, 0, bytes(8)), row["photo"] or Fingerprint(0, 0, bytes(8))) for row in rows]
    whole = [words([pair[side].whole for pair in known]) for side in (0, 1)]
    inner = [words([pair[side].inner for pair in known]) for side in (0, 1)]
    found = np.minimum(bits(whole[0], whole[1]), np.minimum(bits(inner[0], whole[1]), bits(whole[0], inner[1])))
    tints = [np.array([list(pair[side].tint) for pair in known], np.int32) for side in (0, 1)]
    found[np.abs(tints[0][:, None] - tints[1][None]).max(2) > TINT] = BEYOND
    found[[row[kind] is None for row in rows]] = BEYOND
    found[:, [row["photo"] is None for row in rows]] = BEYOND
    for one, other in np.argwhere(found <= MOST):
        if not same_details(known[one][0].detail, known[other][1].detail):
            found[one, other] = BEYOND
    return found


def judged(of: Callable[[str], NDArray[np.int32]], kinds: list[str], at: list[int]) -> dict[str, Any]:
    """Return hits by kind, and how near other photos come."""
    own: dict[str, NDArray[np.int32]] = {}
    others: list[NDArray[np.int32]] = []
    for kind in kinds:
        found = of(kind).copy()
        own[kind] = np.diag(found).copy()
        np.fill_diagonal(found, BEYOND)
        others.append(found if kind != "photo" else np.triu(found) + BEYOND * np.tri(len(found), dtype=np.int32))
    meant = np.concatenate([own[kind] for kind in kinds if kind not in EXTRA | {"photo"}])
    apart = np.concatenate([found.ravel() for found in others])
    return {
        "pairs": {"photos": len(own["photo"]) * (len(own["photo"]) - 1) // 2, "all": int(sum(map(np.size, others)))},
        "nearest_two_photos": int(others[kinds.index("photo")].min()),
        "nearest_copy_of_another": int(apart.min()),
        "hits_percent": {most: percent(meant, most) for most in at},
        "false_hits": {most: int((apart <= most).sum()) for most in at},
        "hits_percent_by_kind": {kind: percent(values, at[0]) for kind, values in own.items() if kind != "photo"},
    }


def percent(values: NDArray[np.int32], most: int) -> float:
    """Return how many per cent are within a distance."""
    return round(100 * float((values <= most).mean()), 2)


def measure(photos: list[Path]) -> dict[str, Any]:
    """Measure animed's fingerprint."""
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(looks, photos, chunksize=8))
    told = judged(partial(distances, rows), list(rows[0]), [DEFAULT, 20, 32, 48, 56, 64, 72, 80, 88])
    return {"photos": len(photos), "without": sum(row["photo"] is None for row in rows), "default": DEFAULT, **told}


def measure_hashes(photos: list[Path]) -> dict[str, Any]:
    """Measure hashes of whole photos: hits just below the first false hit."""
    told: dict[str, Any] = {}
    for name in HASHES:
        for size in (8, 12, 16) if name != "whash" else (8, 16):
            with ProcessPoolExecutor(2) as pool:
                rows = list(pool.map(partial(hashes, name=name, size=size), photos, chunksize=8))

            def of(kind: str, rows: list[dict[str, list[bool]]] = rows) -> NDArray[np.int32]:
                packed = [np.packbits(np.array([row[which] for row in rows]), axis=1) for which in (kind, "photo")]
                wide = [np.pad(one, ((0, 0), (0, 32 - one.shape[1]))).copy().view(np.uint64) for one in packed]
                return bits(wide[0], wide[1])

            kinds = [kind for kind in rows[0] if kind not in EXTRA]
            first = min(judged(of, kinds, [0])[key] for key in ("nearest_two_photos", "nearest_copy_of_another"))
            most = first - 1
            told[f"{name} {size * size}"] = {"first_false": first, **judged(of, kinds, [most])["hits_percent"]}
    return told


def measure_lookup(count: int) -> dict[str, Any]:
    """Measure a look for the nearest among photos of ordinary colours, and what they take."""
    chance = random.Random(1)

    def one() -> Fingerprint:
        tint = bytes(min(255, max(0, round(chance.gauss(128, 12)))) for _ in range(8))
        return Fingerprint(chance.getrandbits(256), chance.getrandbits(256), tint)

    tracemalloc.start()
    index = Looks((b"2024/05/IMG_%08d.jpg" % number, "recipe", one()) for number in range(count))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    asked, began = [one() for _ in range(50)], time.perf_counter()
    for each in asked:
        index.nearest(b"another.jpg", "recipe", each, DEFAULT)
    taken = (time.perf_counter() - began) / len(asked)
    return {"photos": count, "ms_a_look": round(1000 * taken, 1), "bytes_a_photo": round(size / count)}


def main() -> None:
    """Run one measurement and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("photos", type=Path, nargs="?")
    parser.add_argument("--hashes", action="store_true")
    parser.add_argument("--lookup", type=int, default=0)
    options = parser.parse_args()
    if options.lookup:
        told = measure_lookup(options.lookup)
    else:
        photos = sorted(path for path in options.photos.iterdir() if path.is_file())
        told = measure_hashes(photos) if options.hashes else measure(photos)
    print(json.dumps(told, indent=2))  # noqa: T201 - its whole purpose


if __name__ == "__main__":
    main()
