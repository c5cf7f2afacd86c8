from .app import build_app as build_app
from .app import guard_app as guard_app
from .app import hosts_of as hosts_of
from .app import listen as listen
from .app import serve as serve
from .explorer import Explorer as Explorer
from .page import explorer_widget as explorer_widget
from .page import write_page as write_page
