from .model import ConformanceError as ConformanceError
from .model import check_model as check_model
from .repair import check_repair as check_repair
from .strategy import check_strategy as check_strategy
from .strategy import small_subject as small_subject
