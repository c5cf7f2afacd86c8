"""Start the service, audit it from outside, stop it: the Python door of fairbits."""

import sys
from threading import Thread

import pandas as pd
from service import service

import fairbits

budget = sys.argv[1] if len(sys.argv) > 1 else "20s"
people = pd.read_csv("../people.csv")
schema = fairbits.infer_schema(people, target="approved", favourable="yes", protected=["sex", "nationality"])

server = service()
Thread(target=server.serve_forever, daemon=True).start()
try:
    address = f"http://127.0.0.1:{server.server_port}/score"
    audit = fairbits.Audit(address, people, schema, name="loan-service", rate=200, retries=2)
    done = audit.audit(budget=budget, out="run")
finally:
    server.shutdown()
    server.server_close()
print(done.data.sentence, done.page)
