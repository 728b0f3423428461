"""Photos that lie on their side come out upright, once and only once, whatever says how they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import photo_files
import pytest
from photo_bench import Bench, Drawn, delta_e
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray

ORIENTATION: Final = 0x0112
FORMS: Final = ("JPEG", "PNG", "WEBP", "TIFF", "AVIF")
CORNERS: Final = ((230, 30, 30), (30, 200, 40), (40, 50, 220), (240, 220, 60))  # from the upper left, row by row
XMP: Final = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{}"/>'
    "</rdf:RDF></x:xmpmeta>"
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("inbox"))


def upright() -> Image.Image:
    """Return a picture of 64 by 32 pixels with a colour in each quarter."""
    quarters = np.array(CORNERS, np.uint8).reshape(2, 2, 3)
    return Image.fromarray(quarters.repeat(16, axis=0).repeat(32, axis=1))


def laid(orientation: int) -> Image.Image:
    return photo_files.turned(upright(), orientation)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    lossy: dict[str, Any] = {} if form in {"PNG", "TIFF"} else {"quality": 95}
    return photo_files.saved(image, form, **lossy, **options)


def exif(orientation: int) -> Image.Exif:
    """Return EXIF data that say how a picture lies, and who took it."""
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    tags[0x010F] = "A maker"
    return tags


def heic(orientation: int, told: int = 1, order: Literal["<", ">"] = "<") -> bytes:
    """Return a HEIC file that is turned by its own boxes, and whose EXIF says `told` besides."""
    tags = exif(orientation)
    tags.endian = order
    data = photo_files.heic(laid(orientation), exif=tags.tobytes(), quality=95, chroma=444)
    # The library writes the boxes, and leaves the tag as it is.
    was, now = (tag_bytes(value, order) for value in (orientation, told))
    assert data.count(was) == 1
    return data.replace(was, now)


def tag_bytes(orientation: int, order: Literal["<", ">"]) -> bytes:
    """Return the entry of the orientation in a TIFF directory."""
    name: Literal["little", "big"] = "little" if order == "<" else "big"
    parts = ((ORIENTATION, 2), (3, 2), (1, 4), (orientation, 2))
    return b"".join(value.to_bytes(width, name) for value, width in parts)


def quarters(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return the colours in the middle of the four quarters of a picture, row by row."""
    height, width = pixels.shape[:2]
    return np.array([pixels[y * height // 4, x * width // 4, :3] for y in (1, 3) for x in (1, 3)])


def assert_upright(drawn: Drawn) -> None:
    """Check the pixels, what the worker says, and every place where a picture may say how it lies."""
    pixels = drawn.pixels()
    assert pixels.shape[:2] == (32, 64)
    assert (drawn.said.width, drawn.said.height) == (64, 32)
    assert delta_e(quarters(pixels), CORNERS).max() < 3
    image = drawn.image()
    # getexif also hears an orientation in XMP; the AVIF reader would have turned by boxes.
    assert image.getexif().get(ORIENTATION, 1) == 1
    assert b'Orientation="' not in drawn.data or b'Orientation="1"' in drawn.data
    assert not {b"irot", b"imir"} & {drawn.data[at : at + 4] for at in range(min(len(drawn.data), 4096))}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", FORMS)
def test_by_exif(bench: Bench, form: str, orientation: int) -> None:
    """The EXIF orientation is applied, and the picture has none but 1; an AVIF file has it in boxes besides."""
    data = saved(laid(orientation), form, exif=exif(orientation))
    drawn = bench.draw(data)
    assert_upright(drawn)
    assert drawn.image().getexif()[0x010F] == "A maker"


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("output", ["jpeg", "png"])
def test_heic_by_its_boxes(bench: Bench, orientation: int, output: str) -> None:
    """A HEIC file turns by its own boxes."""
    assert_upright(bench.draw(heic(orientation), output_format=output))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_heic_by_its_boxes_though_exif_says_it_too(bench: Bench, orientation: int, order: Literal["<", ">"]) -> None:
    """A HEIC file of a phone says it twice, in boxes and in EXIF, and is turned once."""
    assert_upright(bench.draw(heic(orientation, orientation, order)))


@pytest.mark.parametrize("orientation", range(2, 9))
def test_heic_is_not_turned_by_exif_alone(bench: Bench, orientation: int) -> None:
    """The HEIF standard has boxes turn a picture, and EXIF only tell; every viewer shows such a file as it lies."""
    assert_upright(bench.draw(heic(1, orientation)))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_by_xmp_alone(bench: Bench, form: str, orientation: int) -> None:
    """Where EXIF is silent, the orientation in XMP counts."""
    text = XMP.format(orientation)
    options: dict[str, Any] = {"xmp": text.encode()}
    if form == "PNG":
        from PIL.PngImagePlugin import PngInfo  # noqa: PLC0415 - of PNG alone

        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", text)
        options = {"pnginfo": info}
    assert_upright(bench.draw(saved(laid(orientation), form, **options)))


def test_exif_goes_before_xmp(bench: Bench) -> None:
    """Where both speak and disagree, EXIF is heard: it is what cameras and viewers heed."""
    data = saved(laid(6), "JPEG", exif=exif(6), xmp=XMP.format(3).encode())
    assert_upright(bench.draw(data))


@pytest.mark.parametrize("value", [0, 9, 65535])
def test_nonsense_turns_nothing(bench: Bench, value: int) -> None:
    """A value that is none of the eight leaves the photo as it lies."""
    assert_upright(bench.draw(saved(upright(), "JPEG", exif=exif(value))))
