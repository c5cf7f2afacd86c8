from .page import diff_page as diff_page
from .page import render_diff as render_diff
from .page import write_diff as write_diff
from .records import ModelDiff as ModelDiff
from .run import TOP as TOP
from .run import diff_subjects as diff_subjects
from .run import sides_of as sides_of
from .run import with_model as with_model
