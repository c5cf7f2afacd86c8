"""Does my own model, strategy or repair keep the rules? Checks to be called from the tests of whoever extends fairbits.

Each check runs the real thing and raises :class:`ConformanceError` with one sentence at the first rule that is broken.

>>> import numpy as np, fairbits
>>> from fairbits.testing import check_model
>>> schema = fairbits.Schema((fairbits.Category(name="sex", labels=("F", "M"), protected=True),
...                           fairbits.Integer(name="age", low=18, high=90)), target="hired", classes=("no", "yes"))
>>> def model(rows):
...     return 0.2 + 0.005 * rows["age"]
>>> check_model(model, schema, [[0, 30], [1, 60]])
('shape', 'range', 'input', 'repeat', 'batch', 'twins')
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
