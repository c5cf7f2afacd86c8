"""``python -m fairbits``."""

from fairbits.cli import main

main()
