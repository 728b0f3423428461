"""One watched folder and everything that is decided per folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from animed.config.fields import (
    Bits,
    Duration,
    Extensions,
    Folder,
    Group,
    Name,
    Positive,
    StyleName,
    Template,
    Texts,
    only,
    refused,
)
from animed.config.units import format_duration

_PHOTO_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "tif", "tiff", "bmp", "gif", "heic", "heif", "avif")


FROM_FOLDER: Final = "from-folder"  # no style can have this name


class Part(BaseModel):
    """A part of the configuration: frozen, strict about types, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=False)


class Preserve(Part):
    """The group `preserve`: what of a photo its picture keeps."""

    mtime: bool = Field(default=True, description="Give the picture the photo's time of last change.")
    exif: bool = Field(default=True, description="Keep what the photo says of itself: EXIF, XMP, IPTC.")
    gps: bool = Field(default=True, description="Keep the place where the photo was taken, as a part of that.")
    icc: Literal["srgb", "keep", "strip"] = Field(
        default="srgb",
        description="Colours of the picture: srgb, with a profile that says so; keep, the photo's own RGB space and "
        "profile (srgb where it has none); strip, sRGB without a profile.",
    )


class Mode(Part):
    """The group `mode`: rights of what animed writes."""

    file: Bits = Field(default=None, description="Permission bits of pictures; null leaves them to the umask.")
    dir: Bits = Field(default=None, description="Permission bits of new folders; null leaves them to the umask.")
    group: Group = Field(default=None, description="Group of pictures and new folders, by name or number.")


def _beside(given: dict[str, Any], suffix: str) -> Path:
    """Return the folder next to the inbox that is named after it."""
    path = given["path"]
    name = f"{given['name']}-{suffix}"
    # The parent of a path that ends in `..` is only known to the system.
    return Path(path, "..", name) if path.name == ".." else path.parent / name


class InboxConfig(Part):
    """A watched folder, where its pictures go, and how they are made."""

    name: Name = Field(description="A short unique name for logs and status.")
    path: Folder = Field(description="The folder that is watched for photos.")
    output: Folder = Field(description="The folder that the pictures go to.")
    style: StyleName = Field(
        default="cel",
        description="Name of the style; `animed styles list` shows them. from-folder: each sub-folder names its own.",
    )
    strength: float = Field(
        default=1.0, ge=0, le=1, description="How much of the style shows: 0 the photo, 1 the style."
    )
    max_edge: int = Field(default=1024, ge=64, le=65_535, description="Longest side that the network sees, in pixels.")
    output_size: Literal["styled", "original"] = Field(
        default="styled", description="Size of the picture: as the network drew it, or the photo's own."
    )
    watch: Literal["auto", "native", "poll", "both", "off"] = Field(
        default="auto", description="How new files are noticed; auto polls network file systems."
    )
    rescan_interval: Duration = Field(default=300.0, description="Time between complete scans of the folder; 0 is off.")
    poll_interval: Positive = Field(default=30.0, description="Time between looks at a folder that is polled.")
    stable_for: Positive = Field(default=2.0, description="Quiet time before a file counts as complete.")
    stable_max: Positive = Field(
        default=600.0, validate_default=True, description="Longest wait for a file that is empty or keeps changing."
    )
    recursive: bool = Field(default=True, description="Take photos in sub-folders as well.")
    max_depth: int = Field(default=16, ge=1, description="Deepest level of sub-folders that is looked into.")
    follow_symlinks: Annotated[bool, only(False)] = Field(  # noqa: FBT003 - the value is what is meant.
        default=False, description="Follow symbolic links."
    )
    extensions: Extensions = Field(
        default=_PHOTO_EXTENSIONS, description="Files with these extensions are photos, in any case of letters."
    )
    ignore: Texts = Field(default=(), description="More patterns of files to leave alone, written as in .gitignore.")
    ignore_conflict_copies: bool = Field(default=True, description="Leave the conflict copies of sync programs alone.")
    require_marker: bool = Field(
        default=False, description="Work only while a file .animed-inbox is there, as proof that the disk is mounted."
    )
    layout: Literal["mirror", "flat", "date"] = Field(
        default="mirror", description="Sub-folders of the output: as in the inbox, none, or by date (2024/05)."
    )
    output_name: Template = Field(
        default="{stem}.{style}{ext}",
        description="File name of a picture, made of {stem}, {style}, {ext}, {counter}, {inbox}, {folder}, and "
        "{year}, {month}, {day}, {hour}, {minute}, {second} of when the photo was taken.",
    )
    output_format: Literal["same", "jpeg", "png", "webp", "avif"] = Field(
        default="same", description="Format of pictures; same keeps the photo's where it can be written."
    )
    quality: int = Field(default=92, ge=1, le=100, description="Quality of lossy formats.")
    subsampling: Literal["auto", "4:4:4", "4:2:2", "4:2:0"] = Field(
        default="auto", description="Resolution of colour in jpeg and avif; auto is full from quality 90 on."
    )
    progressive: bool = Field(default=True, description="Write jpeg in passes, from coarse to fine; it is smaller so.")
    on_conflict: Literal["suffix", "skip", "overwrite", "fail"] = Field(
        default="suffix", description="What to do when the picture's name is taken."
    )
    originals: Literal["keep", "move", "delete"] = Field(
        default="keep", description="What becomes of a photo once its picture is safe."
    )
    processed_dir: Folder = Field(
        default_factory=lambda given: _beside(given, "processed"),
        description="Where originals are moved to; null is NAME-processed beside the inbox.",
    )
    failed: Literal["leave", "move", "copy"] = Field(
        default="leave", description="What becomes of a photo that cannot be drawn."
    )
    failed_dir: Folder = Field(
        default_factory=lambda given: _beside(given, "failed"),
        description="Where failed photos go; null is NAME-failed beside the inbox.",
    )
    report: Literal["off", "file"] = Field(
        default="off", description="Text files in the output folder that say what failed, and how all is."
    )
    dedupe: Literal["content", "path", "similar"] = Field(
        default="content",
        description="Draw equal photos once (content), photos that look alike too (similar), or every path (path).",
    )
    similar_distance: int = Field(
        default=44, ge=0, le=100, description="For similar: in how many of 256 bits photos that look alike may differ."
    )
    preserve: Preserve = Field(default_factory=Preserve, description="What of a photo its picture keeps.")
    mode: Mode = Field(default_factory=Mode, description="Rights of what animed writes.")
    max_pixels: int = Field(
        default=120_000_000, ge=1, le=2**40, description="Photos with more pixels than this are refused."
    )
    animated: Literal["first", "skip"] = Field(
        default="first", description="Animated files: draw the first frame, or skip the file."
    )
    faces: Literal["off", "auto"] = Field(
        default="off", description="Draw small faces by themselves, where they come out clean (auto)."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_folders(cls, given: object) -> object:
        """Let null stand for the default of the two folders beside the inbox."""
        if not isinstance(given, dict):
            return given
        return {key: value for key, value in given.items() if value is not None or not key.endswith("_dir")}

    @property
    def style_from_folder(self) -> bool:
        """Say whether the first folder on the way to a photo names its style."""
        return self.style == FROM_FOLDER

    @field_validator("subsampling")
    @classmethod
    def _as_webp_can(cls, value: str, info: ValidationInfo) -> str:
        """Refuse what webp cannot do, where pictures are to be webp."""
        if info.data.get("output_format") == "webp" and value not in {"auto", "4:2:0"}:
            raise refused("auto or 4:2:0 with output_format: webp, which has no other")
        return value

    @field_validator("stable_max")
    @classmethod
    def _after_quiet(cls, value: float, info: ValidationInfo) -> float:
        """Refuse a limit that would end before the quiet time has passed once."""
        least = info.data.get("stable_for", 0.0)
        if value < least:
            raise refused(f"at least stable_for, which is {format_duration(least)}")
        return value
