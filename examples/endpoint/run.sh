python audit.py 20s
