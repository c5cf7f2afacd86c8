from .model import check_model as check_model
from .repair import check_repair as check_repair
from .rule import ConformanceError as ConformanceError
from .small import small_subject as small_subject
from .strategy import check_strategy as check_strategy
