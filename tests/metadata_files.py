"""Photos with metadata, built for tests, and pictures of them, made as a worker makes them but without a network."""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import replace
from typing import Any, Final

from photo_files import decoded, written
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from animed.engine.pipeline import imprint_of
from animed.imaging import encode
from animed.records import PictureFormat, Recipe

ORIENTATION, SOFTWARE, MAKE, MODEL, EXIF, GPS = 0x0112, 0x0131, 0x010F, 0x0110, 0x8769, 0x8825
CHANGED, TAKEN, DIGITISED, ZONE, MAKER_NOTE = 0x0132, 0x9003, 0x9004, 0x9011, 0x927C
IFD1, WIDTH, HEIGHT, COLOUR_SPACE, UNIQUE = -1, 0xA002, 0xA003, 0xA001, 0xA420
FORMATS: Final[tuple[PictureFormat, ...]] = ("jpeg", "png", "webp", "avif")
RECIPE: Final = Recipe("cel", "a" * 64, "half_pixel", 0.5, 64, "same", 92, exif=True, gps=True)


def record() -> Image.Exif:
    """Return what a camera writes, held sideways."""
    exif = Image.Exif()
    exif[MAKE], exif[MODEL], exif[ORIENTATION], exif[SOFTWARE] = "Maker", "Model 1", 6, "camera 1.0"
    exif[EXIF] = {TAKEN: "2024:05:06 07:08:09", ZONE: "+02:00", WIDTH: 4000, HEIGHT: 3000, COLOUR_SPACE: 65535}
    exif[GPS] = {1: "N", 2: (48.0, 8.0, 14.0)}
    return exif


def photo(form: str = "jpeg", **options: Any) -> bytes:
    """Return a small photo with these options of saving."""
    if isinstance(options.get("exif"), Image.Exif):
        options["exif"] = options["exif"].tobytes()  # which not every plugin does by itself
    target = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(target, form, **options)
    return target.getvalue()


def with_xmp(packet: bytes, form: str = "jpeg") -> bytes:
    """Return a photo that has an XMP packet in the way of its format."""
    if form == "png":
        chunks = PngInfo()
        chunks.add_itxt("XML:com.adobe.xmp", packet.decode())
        return photo(form, pnginfo=chunks)
    return photo(form, tiffinfo={700: packet}) if form == "tiff" else photo(form, xmp=packet)


def packet(properties: str, spaces: str = "", attributes: str = "") -> bytes:
    """Return an XMP packet with these properties as elements and as attributes."""
    known = {
        "dc": "http://purl.org/dc/elements/1.1/",
        "xmp": "http://ns.adobe.com/xap/1.0/",
        "exif": "http://ns.adobe.com/exif/1.0/",
        "tiff": "http://ns.adobe.com/tiff/1.0/",
        "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    }
    declared = " ".join(f'xmlns:{name}="{uri}"' for name, uri in known.items())
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    return (
        f'<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {rdf}>'
        f'<rdf:Description rdf:about="" {declared} {spaces} {attributes}>{properties}</rdf:Description>'
        f'</rdf:RDF></x:xmpmeta>{" " * 50}<?xpacket end="w"?>'
    ).encode()


def iim(*sets: tuple[int, int, bytes]) -> bytes:
    """Return an IPTC block of datasets: record, number, value."""
    return b"".join(struct.pack(">BBBH", 0x1C, record, number, len(value)) + value for record, number, value in sets)


def with_iptc(block: bytes, jpeg: bytes | None = None, *, others: bytes = b"") -> bytes:
    """Return a JPEG with an IPTC block as editors write it, before other resources of Photoshop's."""
    body = b"Photoshop 3.0\0" + resource(0x0404, block) + others
    data = jpeg or photo()
    return data[:2] + b"\xff\xed" + struct.pack(">H", 2 + len(body)) + body + data[2:]


def resource(number: int, data: bytes) -> bytes:
    """Return a resource of Photoshop's."""
    return b"8BIM" + struct.pack(">HH", number, 0) + struct.pack(">I", len(data)) + data + bytes(len(data) % 2)


def picture(data: bytes, form: PictureFormat = "jpeg", **recipe: Any) -> bytes:
    """Return the picture of a photo whose network changes nothing."""
    found, wanted = decoded(data, max_edge=64), replace(RECIPE, **recipe)
    source = hashlib.sha256(data).hexdigest()
    return written(found, form, imprint=imprint_of(found, wanted, encode.Coding(form), source=source))


def opened(data: bytes) -> Image.Image:
    """Return a picture as another program opens it."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def said(data: bytes) -> str:
    """Return the XMP packet of a picture."""
    found = opened(data).info.get("xmp", b"")
    assert isinstance(found, bytes)
    return found.decode()


def parsed(data: bytes) -> Image.Exif:
    """Return EXIF data as another library reads them."""
    exif = Image.Exif()
    exif.load(data)
    return exif
