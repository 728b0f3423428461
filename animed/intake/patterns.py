"""The names that are never photos, as data: who makes them, what they look like, and of what kind they are.

Patterns are shell globs without a slash, matched against one component of a path, NFC-normalised and case-folded.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Applies = Literal["file", "folder", "any"]


class Pattern(NamedTuple):
    """One built-in rule. A conflict copy is a real photo, so users can ask for those."""

    producer: str
    glob: str
    applies: Applies = "any"
    conflict: bool = False

    @property
    def rule(self) -> str:
        """Return the stable name under which logs and `check --explain` speak of it."""
        kind = "conflict-copy" if self.conflict else "builtin"
        return f"{kind}:{self.producer}:{self.glob}".replace("\r", "\\r")


_FILES: Final[dict[str, tuple[str, ...]]] = {
    "animed": ("*.error.json", "*.failed.txt", "animed-status.txt"),
    "nextcloud": (
        ".*.~*",
        "._sync_*.db*",
        ".sync_*.db*",
        ".csync_journal.db*",
        ".owncloudsync.log*",
        "*.nextcloud",
        "*.owncloud",
        "*.octransferid*.part",
    ),
    "dropbox": (".dropbox", ".dropbox.attr", ".~*"),
    "icloud": (".*.icloud",),
    "resilio": ("*.!sync", "*.bts"),
    "rsync": (".*.??????",),
    "rclone": ("*.????????.partial", "*.partial"),
    "browser": ("*.crdownload", "*.part", "*.opdownload"),
    "transfer": (
        "*.filepart",
        "*.tacitpart",
        "*.uploading",
        "*.temp",
        "*.tmp",
        "*.aria2",
        "*.!ut",
        "*.!bt",
        "*.unison",
        ".synkron.*",
        ".sync.ffs_db",
        ".symform*",
    ),
    "editor": (
        ".goutputstream-*",
        "*~",
        "~$*",
        ".~lock.*",
        "~*.tmp",
        "*.~*",
        ".#*",
        "#*#",
        "*.swp",
        "*.swx",
        ".*.sw?",
        ".*.*sw?",
        "*.kate-swp",
        "4913",
    ),
    "share": (".nfs*", ".fuse_hidden*", ".smbdelete*", "*:zone.identifier", "*:com.dropbox.attrs", "*:afp_*"),
    "macos": ("._*", ".ds_store", ".volumeicon.icns", ".localized", "icon\r*"),
    "windows": ("thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini"),
    "synology": ("synophoto_thumb_*", "synofile_thumb_*"),
    "android": (".pending-*", ".trashed-*", ".nomedia"),
    "linux": (".directory",),
}

_FOLDERS: Final[dict[str, tuple[str, ...]]] = {
    "syncthing": (".stfolder", ".stfolder.removed-*", ".stversions"),
    "dropbox": (".dropbox.cache",),
    "googledrive": (".tmp.driveupload", ".tmp.drivedownload"),
    "resilio": (".sync",),
    "rsync": (".rsync-partial", ".~tmp~"),
    "transfer": ("_unpack_*",),
    "share": (".recycle", "#recycle"),
    "macos": (
        ".appledouble",
        ".spotlight-v100",
        ".trashes",
        ".fseventsd",
        ".fseventd",
        ".temporaryitems",
        ".documentrevisions-v100",
        "network trash folder",
        "temporary items",
        "__macosx",
    ),
    "windows": ("$recycle.bin", "system volume information"),
    "synology": ("@eadir", "#snapshot", "@tmp", ".synologyworkingdirectory", "@*"),
    "qnap": (".@__thumb", "@recycle", ".streams"),
    "linux": (".zfs", ".snapshot", ".snapshots", "lost+found", ".trash-*"),
    "android": (".thumbnails",),
}

_ANY: Final[dict[str, tuple[str, ...]]] = {
    "animed": (".syncthing.animed-*.tmp", ".animed-*"),
    "syncthing": (".syncthing.*.tmp", "~syncthing~*.tmp", ".syncthing.tmp.*", ".stfolder", ".stignore"),
    "browser": ("*.download",),
    "macos": (".appledb", ".appledesktop", ".apdisk", ".com.apple.timemachine.*", "*.sb-????????-??????"),
    "synology": ("@synoresource",),
}

_CONFLICTS: Final[dict[str, tuple[str, ...]]] = {
    "syncthing": ("*.sync-conflict-????????-??????-???????", "*.sync-conflict-????????-??????-???????.*"),
    "nextcloud": ("* (conflicted copy *)*", "*_conflict-*"),
    "dropbox": ("* (*'s conflicted copy ????-??-??*)*", "* (*\u2019s conflicted copy ????-??-??*)*"),
}


def _all(table: dict[str, tuple[str, ...]], applies: Applies, *, conflict: bool = False) -> list[Pattern]:
    return [Pattern(producer, glob, applies, conflict) for producer, globs in table.items() for glob in globs]


# The order decides which rule a name that several rules match is explained by: the more specific tables come first.
BUILT_IN: Final[tuple[Pattern, ...]] = (
    *_all(_ANY, "any"),
    *_all(_FOLDERS, "folder"),
    *_all(_FILES, "file"),
    *_all(_CONFLICTS, "file", conflict=True),
)
