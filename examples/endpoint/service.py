"""A stand-in for a deployed service: POST {"rows": [...]}, answered with {"scores": [...]}."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

people = pd.read_csv("../people.csv")
encode = ColumnTransformer([("hot", OneHotEncoder(), ["sex", "nationality", "education"])], remainder=StandardScaler())
model = make_pipeline(encode, LogisticRegression()).fit(people.drop(columns="approved"), people["approved"])


class Handler(BaseHTTPRequestHandler):
    """Answers one batch of people at a time."""

    def do_POST(self) -> None:
        """Scores of the rows in the body."""
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["rows"]
        scores = model.predict_proba(pd.DataFrame(rows))[:, 1].tolist()
        answer = json.dumps({"scores": scores}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def service(port: int = 0) -> ThreadingHTTPServer:
    """A server on this machine; port 0 takes a free one."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    service(8000).serve_forever()
