"""Pictures in and out: decoding, metadata, sizes, tensors. Only worker processes import this room."""
