"""Text classification data from the Hub or from local files."""

from hf_vat.data.loading import DataArguments, load_text_classification

__all__ = ["DataArguments", "load_text_classification"]
