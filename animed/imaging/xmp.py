"""XMP packets: read with care, and written anew.

A packet is XML out of a stranger's file. It is bounded in bytes, depth and number of elements, and one that declares
anything (DOCTYPE, entities) is not read at all: no packet needs to, and that is how small XML becomes large.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    Properties = dict[str, ET.Element]  # by qualified name, "{namespace}name": an element of that name with the value

MAX_READ: Final = 2 * 2**20  # bytes of a packet; editors write some 20 KiB, and more where they keep previews in it
MAX_WRITTEN: Final = 65_502  # bytes that a JPEG segment takes beside the name of XMP

_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"
_LANG: Final = f"{_XML}lang"
_RESOURCE: Final = f"{_RDF}resource"  # the one attribute of RDF that is a value
_MAX_DEPTH: Final = 24  # elements in one another; regions of faces need nine
_MAX_ELEMENTS: Final = 20_000
_DECLARES: Final = re.compile(r"<!\s*(?:DOCTYPE|ENTITY|ELEMENT|ATTLIST|NOTATION)", re.IGNORECASE)
_HEADER: Final = re.compile(r"<\?xml\b[^>]{0,200}\?>")  # names an encoding that is decoded already
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what no XML may hold

# How namespaces are called in what is written; programs that search for "xmp:Rating" as text are not rare.
PREFIXES: Final[Mapping[str, str]] = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/XML/1998/namespace": "xml",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://ns.adobe.com/xap/1.0/": "xmp",
    "http://ns.adobe.com/xap/1.0/rights/": "xmpRights",
    "http://ns.adobe.com/photoshop/1.0/": "photoshop",
    "http://ns.adobe.com/tiff/1.0/": "tiff",
    "http://ns.adobe.com/exif/1.0/": "exif",
    "http://cipa.jp/exif/1.0/": "exifEX",
    "http://ns.adobe.com/exif/1.0/aux/": "aux",
    "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/": "Iptc4xmpCore",
    "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": "Iptc4xmpExt",
    "http://ns.adobe.com/lightroom/1.0/": "lr",
    "http://www.digikam.org/ns/1.0/": "digiKam",
    "http://ns.microsoft.com/photo/1.0/": "MicrosoftPhoto",
    "http://ns.microsoft.com/photo/1.0": "MicrosoftPhoto_1_",  # as Windows itself writes it
    "http://ns.microsoft.com/photo/1.2/": "MP",
    "http://ns.microsoft.com/photo/1.2/t/RegionInfo#": "MPRI",
    "http://ns.microsoft.com/photo/1.2/t/Region#": "MPReg",
    "http://ns.iview-ms.com/mediapro/1.0/": "mediapro",
    "http://ns.acdsee.com/iptc/1.0/": "acdsee",
    "http://ns.useplus.org/ldf/xmp/1.0/": "plus",
    "http://creativecommons.org/ns#": "cc",
    "http://www.metadataworkinggroup.com/schemas/keywords/": "mwg-kw",
    "http://www.metadataworkinggroup.com/schemas/regions/": "mwg-rs",
    "http://ns.adobe.com/xmp/sType/Area#": "stArea",
    "http://ns.adobe.com/xap/1.0/sType/Dimensions#": "stDim",
    "http://ns.adobe.com/xap/1.0/sType/ResourceRef#": "stRef",
    "urn:x-animed:1.0/": "animed",
}


# The same the other way round, as qualified names begin.
SPACES: Final[Mapping[str, str]] = {prefix: f"{{{uri}}}" for uri, prefix in PREFIXES.items()}


def read(packet: bytes) -> Properties:
    """Return the properties of a packet; none where it is too large, malformed, or declares anything."""
    if len(packet) > MAX_READ or _DECLARES.search(text := _decoded(packet)):
        return {}
    parser = ET.XMLParser(target=_Bounded())  # noqa: S314 - what is dangerous in XML was refused above
    try:
        parser.feed(text)
        root = parser.close()
    except (ET.ParseError, ValueError):
        return {}
    return dict(_properties(root))


def write(properties: Properties, *, needed: Collection[str] = ()) -> bytes:
    """Return a packet of at most MAX_WRITTEN bytes; what is longest is left out where it would be more.

    The names in `needed` are never left out: together they have to fit.
    """
    written = {name: _property(element) for name, element in properties.items()}
    sizes = sorted((len(text.encode()), name) for name, text in written.items())
    used = {uri for element in properties.values() for uri in _spaces(element)} & PREFIXES.keys()
    spaces = "".join(f' xmlns:{PREFIXES[uri]}="{uri}"' for uri in sorted(used) if PREFIXES[uri] not in {"rdf", "xml"})
    head = (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n<x:xmpmeta xmlns:x="adobe:ns:meta/">\n'
        f'<rdf:RDF xmlns:rdf="{_RDF[1:-1]}">\n<rdf:Description rdf:about=""{spaces}>\n'
    )
    tail = '</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end="w"?>'
    excess = len((head + tail).encode()) + sum(size + 1 for size, _ in sizes) - MAX_WRITTEN
    for size, name in reversed(sizes):
        if excess <= 0:
            break
        if name in needed:
            continue
        del written[name]
        excess -= size + 1
    return (head + "".join(f"{text}\n" for text in written.values()) + tail).encode()


def plain(name: str, text: str) -> ET.Element:
    """Return a property whose value is a text."""
    element = ET.Element(name)
    element.text = _clean(text)
    return element


def worded(name: str, text: str) -> ET.Element:
    """Return a property whose value is a text in one language of several, such as a title."""
    element = ET.Element(name)
    item = ET.SubElement(ET.SubElement(element, f"{_RDF}Alt"), f"{_RDF}li", {_LANG: "x-default"})
    item.text = _clean(text)
    return element


def listed(name: str, texts: Iterable[str], *, ordered: bool = False) -> ET.Element:
    """Return a property whose value is a list of texts, such as keywords."""
    element = ET.Element(name)
    items = ET.SubElement(element, _RDF + ("Seq" if ordered else "Bag"))
    for text in texts:
        ET.SubElement(items, f"{_RDF}li").text = _clean(text)
    return element


def split(qualified: str) -> tuple[str, str]:
    """Return the namespace of a qualified name and its local part; a namespace may hold any character, braces too."""
    uri, _, local = qualified[1:].rpartition("}")
    return uri, local


def pruned(element: ET.Element, wanted: Callable[[str], bool]) -> ET.Element | None:
    """Return a property with only those elements and attributes in it that are wanted, at every depth.

    None where that leaves nothing of what it said.
    """
    inner = [left for each in element if wanted(each.tag) and (left := pruned(each, wanted)) is not None]
    attributes = {name: value for name, value in element.items() if wanted(name)}
    says = any(name == _RESOURCE or not name.startswith((_RDF, _XML)) for name in attributes)
    if len(element) and not inner and not says:
        return None
    left = ET.Element(element.tag, attributes)
    left.text = None if len(element) else element.text
    left.extend(inner)
    return left


def text_of(properties: Properties, name: str) -> str:
    """Return the text of a property, the first of several; empty where there is none."""
    element = properties.get(name)
    if element is None:
        return ""
    texts = (each.strip() for each in element.itertext())
    return next((each for each in texts if each), "")


def _decoded(packet: bytes) -> str:
    """Return the characters of a packet: UTF-8, UTF-16 with its mark, or else what old programs wrote."""
    wide = packet.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = packet.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = packet.decode("latin-1")
    return _HEADER.sub("", text.strip("\0 \t\r\n\ufeff"), count=1)


class _Bounded(ET.TreeBuilder):
    """Builds a tree, and gives up where it gets too deep or too large."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ET.Element:
        self._depth += 1
        self._count += 1
        if self._depth > _MAX_DEPTH or self._count > _MAX_ELEMENTS:
            raise ValueError("too deep, or too many elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ET.Element:
        self._depth -= 1
        return super().end(tag)


def _properties(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """Yield the properties of a packet, whether they were written as elements or as attributes."""
    for rdf in root.iter(f"{_RDF}RDF"):
        for description in rdf.findall(f"{_RDF}Description"):
            for name, value in description.attrib.items():
                if name.startswith("{") and not name.startswith((_RDF, _XML)):
                    yield name, plain(name, value)
            for element in description:
                if element.tag.startswith("{"):
                    yield element.tag, element


def _property(element: ET.Element) -> str:
    """Write a property; it declares the namespaces itself that PREFIXES does not name, so that they count as its."""
    strange = {uri: f"ns{number}" for number, uri in enumerate(sorted(_spaces(element) - PREFIXES.keys()))}
    declared = "".join(f' xmlns:{prefix}="{html.escape(uri)}"' for uri, prefix in strange.items())
    return _written(element, {**PREFIXES, **strange}, declared)


def _written(element: ET.Element, prefixes: Mapping[str, str], declared: str = "") -> str:
    """Write an element and all that is in it, without the blanks between elements."""
    name = _name(element.tag, prefixes)
    attributes = declared + "".join(
        f' {_name(key, prefixes)}="{html.escape(value)}"' for key, value in element.items() if key.startswith("{")
    )
    inner = "".join(_written(each, prefixes) for each in element if each.tag.startswith("{"))
    inner = inner or html.escape(element.text or "", quote=False)
    return f"<{name}{attributes}>{inner}</{name}>" if inner else f"<{name}{attributes}/>"


def _name(qualified: str, prefixes: Mapping[str, str]) -> str:
    """Write a qualified name."""
    uri, local = split(qualified)
    return f"{prefixes[uri]}:{local}"


def _spaces(element: ET.Element) -> set[str]:
    """Return all namespaces in an element."""
    names = (name for each in element.iter() for name in (each.tag, *each.attrib))
    return {split(name)[0] for name in names if name.startswith("{")}


def _clean(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return _NOT_XML.sub("", text)
