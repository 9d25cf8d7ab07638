"""Text classifiers whose explanations can be trusted, at home in Hugging Face.

Importing the package registers its models with the Auto classes and its pipeline, "text-classification-explained".
Everything else is loaded where it is first used, so that the import costs little more than those of torch and
transformers. Its names and modules stand in `__init__.pyi`, which type checkers read too.
"""

import lazy_loader

from . import models as models  # registers

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
