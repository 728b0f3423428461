"""Names of pictures, by the real service on real folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness import Service, photo
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NEW_YEARS_EVE = 946_641_600  # 1999-12-31 12:00:00 UTC
KEYS = """layout: date
output_name: "{folder}-{year}{month}{day}-{hour}{minute}{second}-{stem}{counter}.{style}{ext}"
output_format: jpeg"""


def test_pictures_lie_where_and_are_called_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Photos lie by the date of their EXIF data, else by their mtime; a copy by that of the first; none is lost."""
    monkeypatch.setenv("TZ", "UTC")
    service = Service(tmp_path, inbox_keys=KEYS)
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2019:07:04 18:03:59"
    inbox = service.inbox
    first = photo(inbox / "trip" / "rome" / "a.jpg", 1, exif=exif.tobytes())
    photo(inbox / "trip" / "rome" / "a.png", 2, exif=exif.tobytes())
    (inbox / "copy.jpg").write_bytes(first.read_bytes())
    os.utime(photo(inbox / "b\u00e9\n.jpg", 3), (NEW_YEARS_EVE, NEW_YEARS_EVE))
    try:
        done = service.once()
    finally:
        service.close()
    assert done.returncode == 0, done.stderr
    assert sorted(str(each.relative_to(service.outbox)) for each in service.outbox.rglob("*.jpg")) == [
        "1999/12/-19991231-120000-b\u00e9\n.cel.jpg",
        "2019/07/-20190704-180359-copy.cel.jpg",
        "2019/07/trip_rome-20190704-180359-a-2.cel.jpg",
        "2019/07/trip_rome-20190704-180359-a.cel.jpg",
    ]
