from .checks import ConformanceError as ConformanceError
from .checks import check_model as check_model
from .checks import check_repair as check_repair
from .checks import check_strategy as check_strategy
from .checks import small_subject as small_subject
