from .app import build_app as build_app
from .endpoint import guard_app as guard_app
from .explorer import Explorer as Explorer
from .listener import hosts_of as hosts_of
from .listener import listen as listen
from .listener import serve as serve
from .page import write_page as write_page
