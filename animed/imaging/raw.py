"""Camera raw files, where the extra `raw` is installed: the camera's own rendering, else LibRaw's.

A raw file has no colours of its own. What its owner saw on the camera is the JPEG that the camera put into it, so that
is drawn wherever it is as large as the picture needs; it is also many times faster. Otherwise LibRaw develops the
sensor's data: white balance as shot, sRGB, 8 bits.
"""

from __future__ import annotations

import importlib
import io
from typing import TYPE_CHECKING, Any, Final

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from animed import extras
from animed.errors import PhotoError
from animed.imaging import ends, limits
from animed.imaging.faults import BROKEN
from animed.records import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# How the camera was held: from LibRaw's bits (mirror, turn over, transpose) to the number of EXIF.
_TURNS: Final[Mapping[int, int]] = {0: 1, 1: 2, 2: 4, 3: 3, 4: 5, 5: 8, 6: 6, 7: 7}
# A rendering this close to the sensor's size is a photo in full size: cameras cut a few pixels off.
_FULL: Final = 0.9
_PROPORTION: Final = 0.02  # by which a rendering may be longer or wider in shape than the sensor's data
_TIFF: Final[Mapping[bytes, bytes]] = {b"II": b"II*\x00", b"MM": b"MM\x00*"}


def library(form: str, *, load: Callable[[str], Any] = importlib.import_module) -> Any:
    """Return LibRaw's binding. Raise PhotoError("unsupported:raw"), naming the camera format, where it is missing."""
    try:
        return load(extras.MODULES["raw"])
    except ImportError as error:
        detail = f"{form} is a camera raw format: install animed with its extra, {extras.remedy('raw')}"
        raise PhotoError(f"{Reason.UNSUPPORTED}:raw", detail) from error


class Shot:
    """One raw file of the camera format `form`, opened by its head; `close` frees what LibRaw holds.

    Raise PhotoError("unsupported:raw") where the camera is unknown, or OSError.
    """

    def __init__(self, rawpy: Any, data: bytes, form: str) -> None:
        self._rawpy = rawpy
        self._data = data
        self._form = form
        self._raw: Any = self._told(lambda: rawpy.imread(io.BytesIO(data)))
        sizes = self._raw.sizes
        self.size = int(sizes.width), int(sizes.height)  # pixels, before it is turned
        self.turn = _TURNS.get(int(sizes.flip), 1)  # the EXIF orientation that it is still to be turned by

    def picture(self, max_edge: int, *, full: bool) -> Image.Image:
        """Return a loaded picture, not yet turned: at least `max_edge` long or in `full` size, as far as there is one.

        Raise PhotoError or OSError.
        """
        rendering = self._rendering()
        longest = max(self.size)
        if rendering is None or max(rendering.size) < (_FULL * longest if full else min(max_edge, _FULL * longest)):
            rendering = self._rendered(half=not full and longest >= 2 * max_edge)
        rendering.load()
        self._describe(rendering)
        return rendering

    def close(self) -> None:
        """Free the memory; the shot is of no use afterwards."""
        self._raw.close()

    def _rendering(self) -> Image.Image | None:
        """Return the camera's own JPEG, opened; None where there is none, or none that shows the same picture."""
        rawpy = self._rawpy
        try:
            held = self._told(self._raw.extract_thumb)
            if held.format != rawpy.ThumbFormat.JPEG or ends.ends_early("jpeg", held.data):
                return None
            picture = JpegImageFile(io.BytesIO(held.data))
        except BROKEN:
            return None  # the sensor's data are still there
        if max(picture.size) > limits.MAX_SIDE or not self._alike(picture.size):
            return None
        return picture

    def _alike(self, size: tuple[int, int]) -> bool:
        """Say whether a rendering has the sensor's shape: one that was cropped, or turned already, has another one."""
        width, height = size
        return abs(width * self.size[1] / (height * self.size[0]) - 1) <= _PROPORTION

    def _rendered(self, *, half: bool) -> Image.Image:
        """Develop the sensor's data, in half size where that is enough: four times as fast."""
        pixels = self._told(lambda: self._raw.postprocess(use_camera_wb=True, user_flip=0, half_size=half))
        return Image.fromarray(pixels)

    def _describe(self, picture: Image.Image) -> None:
        """Give a picture the file's own EXIF where that can be read: a rendering carries little of it, or none."""
        magic = _TIFF.get(self._data[:2])
        if magic is not None and self._form != "crw":
            # Olympus and Panasonic have words of their own where a TIFF has its number.
            same = self._data.startswith(magic)
            picture.info["exif"] = self._data if same else magic + self._data[4:]

    def _told(self, step: Callable[[], Any]) -> Any:
        """Do a step; LibRaw's errors, which know no common words, become the usual ones."""
        rawpy = self._rawpy
        try:
            return step()
        except rawpy.LibRawFileUnsupportedError as error:
            raise PhotoError(f"{Reason.UNSUPPORTED}:raw", f"this {self._form} file is of an unknown camera") from error
        except rawpy.LibRawTooBigError as error:
            raise PhotoError(Reason.TOO_LARGE, f"LibRaw refuses this {self._form} file as too large") from error
        except rawpy.LibRawUnsufficientMemoryError as error:
            raise MemoryError(f"developing this {self._form} file took more memory than there is") from error
        except (rawpy.LibRawError, rawpy.NotSupportedError) as error:
            cause = error.args[0] if error.args else type(error).__name__
            raise OSError(cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(cause)) from error
