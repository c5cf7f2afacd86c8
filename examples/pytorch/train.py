"""A PyTorch network that decides about loans: its weights, and the whole of it as an exported program."""

import pandas as pd
import torch
from network import approver, untrained

people = pd.read_csv("../people.csv")
features = people.drop(columns="approved")
# Every text column becomes a 0/1 column for each of its values, in place: what fairbits calls one-hot.
text = ["sex", "nationality", "education"]
columns = [pd.get_dummies(features[name]) if name in text else features[name] for name in features]
rows = torch.tensor(pd.concat(columns, axis=1).to_numpy("float32"))
target = torch.tensor((people["approved"] == "yes").to_numpy("float32"))

torch.manual_seed(0)
network = untrained()
optimiser = torch.optim.AdamW(network.parameters(), lr=0.02, weight_decay=0.01)
for _ in range(150):
    optimiser.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(network(rows)[:, 0], target)
    loss.backward()
    optimiser.step()
torch.save(network.state_dict(), "weights.pt")

network = approver()
right = ((network(rows)[:, 0] > 0) == target.bool()).float().mean()
print(f"right about {right:.0%} of the people it learned from")
program = torch.export.export(network, (rows[:2],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
torch.export.save(program, "model.pt2")
