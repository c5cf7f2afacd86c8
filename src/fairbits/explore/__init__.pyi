from .app import build_app as build_app
from .app import hosts_of as hosts_of
from .app import listen as listen
from .app import serve as serve
from .endpoint import guard_app as guard_app
from .explorer import Explorer as Explorer
from .page import write_page as write_page
from .widget import explorer_widget as explorer_widget
