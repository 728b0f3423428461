"""What counts as a photo, by name."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animed.errors import ConfigError
from animed.intake.patterns import BUILT_IN
from animed.intake.rules import Rules

EXTENSIONS = ["jpg", "jpeg", "png", "tmp", "part"]
RULES = Rules(extensions=EXTENSIONS)

JUNK_NAMES = """
.syncthing.a.jpg.tmp ~syncthing~a.jpg.tmp .syncthing.0123456789abcdef.tmp .syncthing.tmp.123 .stignore
.a.jpg.~1a2b3c4d ._sync_1234.db .sync_1234.db-wal .csync_journal.db .owncloudsync.log.1 a.jpg.nextcloud a.jpg.owncloud
a.jpg.ocTransferId123.part a.jpg~ ~$a.jpg .~lock.a.jpg# ~a.tmp a.~jpg .DS_Store ._IMG_1.jpg Thumbs.db .a.swp .a.jpg.swx
.apdisk .directory a.part a.jpg.filepart a.crdownload a.kate-swp .synkron.x .sync.ffs_db .symform1 .fuse_hidden01
a.unison .nfs0001 .dropbox .dropbox.attr desktop.ini .~a.jpg .a.jpg.icloud a.jpg.!sync a.bts .a.jpg.Ab12Cd
a.jpg.1a2b3c4d.partial a.jpg.download a.opdownload a.jpg.tacitpart a.uploading a.temp a.tmp a.aria2 a.!ut a.!bt
.goutputstream-AB12CD .#a.jpg #a.jpg# a.swp a.swx 4913 .smbdeleteAAA a.jpg:Zone.Identifier a.jpg:com.dropbox.attrs
a.jpg:AFP_AfpInfo .AppleDB .AppleDesktop .VolumeIcon.icns .localized .com.apple.timemachine.donotpresent
a.jpg.sb-1a2b3c4d-AbCdEf ehthumbs.db ehthumbs_vista.db SYNOPHOTO_THUMB_M.jpg SYNOFILE_THUMB_M.png @SynoResource
.pending-1690000000-a.jpg .trashed-1690000000-a.jpg .nomedia .animed-inbox .animed-x.jpg .syncthing.animed-1-ab.tmp
a.jpg.error.json a.jpg.failed.txt animed-status.txt
"""

JUNK_FOLDER_NAMES = """
.stfolder .stfolder.removed-20240101-000000 .stversions .dropbox.cache .tmp.driveupload .tmp.drivedownload .sync
.rsync-partial .~tmp~ _UNPACK_x .recycle #recycle .AppleDouble .Spotlight-V100 .Trashes .fseventsd .TemporaryItems
.DocumentRevisions-V100 __MACOSX $RECYCLE.BIN @eaDir #snapshot @tmp .SynologyWorkingDirectory @anything .@__thumb
@Recycle .streams .zfs .snapshot .snapshots lost+found .Trash-1000 .thumbnails a.download .AppleDB
"""

JUNK = [*JUNK_NAMES.split(), "Icon\r"]
JUNK_FOLDERS = [*JUNK_FOLDER_NAMES.split(), "System Volume Information", "Network Trash Folder", "Temporary Items"]

CONFLICTS = [
    "a.sync-conflict-20240131-235959-ABCDEFG.jpg",
    "a (conflicted copy 2024-01-31 235959).jpg",
    "a_conflict-20240131-235959.jpg",
    "a (Anna's conflicted copy 2024-01-31).jpg",
    "a (Anna\u2019s conflicted copy 2024-01-31).jpg",
]


@pytest.mark.parametrize("name", JUNK)
def test_junk_files_are_ignored(name: str) -> None:
    """Every name that a sync tool, browser, editor or system leaves behind is ignored, in any case."""
    for spelling in (name, name.upper()):
        verdict = RULES.judge(b"holiday/" + spelling.encode(), is_dir=False)
        assert verdict is not None
        assert verdict.startswith("builtin:")


@pytest.mark.parametrize("name", JUNK_FOLDERS)
def test_junk_folders_are_ignored_with_all_they_hold(name: str) -> None:
    """A junk folder is ignored, and a photo however deep in it is ignored by the same rule."""
    verdict = RULES.judge(b"x/" + name.encode(), is_dir=True)
    assert verdict is not None
    assert verdict.startswith("builtin:")
    assert RULES.judge(b"x/" + name.encode() + b"/y/z/a.jpg", is_dir=False) == verdict


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict_copies_follow_their_switch(name: str) -> None:
    """A conflict copy is a real photo: users can have it taken."""
    verdict = RULES.judge(name.encode(), is_dir=False)
    assert verdict is not None
    assert verdict.startswith("conflict-copy:")
    assert Rules(extensions=EXTENSIONS, ignore_conflict_copies=False).judge(name.encode(), is_dir=False) is None


@pytest.mark.parametrize(
    "name",
    [
        b"a.jpg",
        b"IMG_1.JPEG",
        b"a b.Jpg",
        b" lead.jpg",
        b"a\nb.jpg",
        b"-rf.jpg",
        b"$(touch pwned).jpg",
        b"\xff\xfe.jpg",
        b"a.b.c.png",
        "\u00e9.jpg".encode(),
        "e\u0301.jpg".encode(),
        b"x/y/z/a.jpg",
        b"holiday.part/a.jpg",
        b"#1 place.jpg",
        b"@home.jpg",
        b"4913.jpg",
    ],
)
def test_photos_are_taken(name: bytes) -> None:
    """Odd names are photos all the same: newlines, spaces, dashes, bytes that are not UTF-8, both forms of accents."""
    assert RULES.judge(name, is_dir=False) is None


@pytest.mark.parametrize(
    ("path", "is_dir", "verdict"),
    [
        (b"a.txt", False, "extension"),
        (b"jpg", False, "extension"),
        (b"a.jpg ", False, "extension"),
        (b"a.\xff", False, "extension"),
        (b"IMG_1.MOV", False, "extension"),  # the video of a Live Photo
        (b"IMG_1.xmp", False, "extension"),  # and sidecars
        (b"IMG_1.jpg.xmp", False, "extension"),
        (b"IMG_1.AAE", False, "extension"),
        (b".hidden.jpg", False, "hidden"),
        (b".hidden", True, "hidden"),
        (b".hidden/a.jpg", False, "hidden"),
        (b"d/" * 16 + b"a.jpg", False, None),
        (b"d/" * 17 + b"a.jpg", False, "too-deep"),
        (b"d/" * 2000 + b"a.jpg", False, "too-deep"),
        (b"/".join([b"d"] * 16), True, None),
        (b"/".join([b"d"] * 17), True, "too-deep"),
        (b"a.folder", True, None),
        (b"", True, None),
    ],
)
def test_the_rule_is_named(path: bytes, is_dir: bool, verdict: str | None) -> None:
    """Each verdict names the rule that decides, in a stable short text."""
    assert RULES.judge(path, is_dir=is_dir) == verdict


def test_not_recursive_is_depth_nought() -> None:
    """Without recursion only the root's own files are taken."""
    rules = Rules(extensions=["jpg"], recursive=False)
    assert rules.judge(b"a.jpg", is_dir=False) is None
    assert rules.judge(b"sub", is_dir=True) == "too-deep"
    assert rules.judge(b"sub/a.jpg", is_dir=False) == "too-deep"


def test_users_ignore_as_git_does() -> None:
    """User patterns are gitignore patterns below the root: anchored, negated, for folders, the last one wins."""
    rules = Rules(extensions=["jpg"], ignore=["# a remark", "", "*.raw.jpg", "/private/", "tmp_*", "!tmp_keep.jpg"])
    assert rules.judge(b"x/a.raw.jpg", is_dir=False) == "user:*.raw.jpg"
    assert rules.judge(b"private", is_dir=True) == "user:/private/"
    assert rules.judge(b"private/deep/a.jpg", is_dir=False) == "user:/private/"
    assert rules.judge(b"private", is_dir=False) == "extension"
    assert rules.judge(b"x/private/a.jpg", is_dir=False) is None
    assert rules.judge(b"tmp_1.jpg", is_dir=False) == "user:tmp_*"
    assert rules.judge(b"tmp_keep.jpg", is_dir=False) is None
    assert rules.judge(b"a\xff.raw.jpg", is_dir=False) == "user:*.raw.jpg"


def test_users_cannot_take_what_is_built_in() -> None:
    """A negation only takes back the user's own patterns."""
    assert Rules(extensions=["jpg"], ignore=["!._a.jpg"]).judge(b"._a.jpg", is_dir=False) == "builtin:macos:._*"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_user_patterns_match_both_forms_of_accents(form: Literal["NFC", "NFD"]) -> None:
    """A pattern matches a name whichever way a Mac or a PC spells its accents."""
    rules = Rules(extensions=["jpg"], ignore=[unicodedata.normalize("NFD", "caf\u00e9*")])
    name = unicodedata.normalize(form, "caf\u00e9 1.jpg").encode()
    assert (rules.judge(name, is_dir=False) or "").startswith("user:")


def test_a_pattern_that_cannot_be_read_is_refused() -> None:
    """A bad pattern is a configuration error that quotes it."""
    with pytest.raises(ConfigError, match="'!'"):
        Rules(extensions=["jpg"], ignore=["*.png", "!"])


def test_every_rule_has_its_own_printable_name() -> None:
    """Rule names are unique per kind, and fit on one line."""
    names = [(pattern.rule, pattern.applies) for pattern in BUILT_IN]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[^\r\n]+", name) for name, _ in names)


NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"/" not in name and b"\0" not in name)


@settings(deadline=None, max_examples=200)
@given(st.lists(NAMES, min_size=1, max_size=5), NAMES, st.booleans())
def test_a_photo_shares_the_fate_of_its_folder(parts: list[bytes], name: bytes, is_dir: bool) -> None:
    """Any bytes are judged, the same each time, and what is in an ignored folder is ignored by the folder's rule."""
    folder = b"/".join(parts)
    of_folder = RULES.judge(folder, is_dir=True)
    verdict = RULES.judge(folder + b"/" + name, is_dir=is_dir)
    assert verdict == Rules(extensions=EXTENSIONS).judge(folder + b"/" + name, is_dir=is_dir)
    if of_folder is not None:
        assert verdict == of_folder


def test_a_hundred_thousand_names_share_their_folders() -> None:
    """A big inbox is judged without keeping a verdict per photo."""
    rules = Rules(extensions=["jpg"])
    assert all(rules.judge(b"2024/%d/%d.jpg" % (n % 100, n), is_dir=False) is None for n in range(100_000))
    assert len(rules._folders) == 102
