python train.py
fairbits init ../people.csv --model model.pt2 --yes \
  --target approved --favourable yes --protected sex,nationality,age
fairbits audit subject.toml --budget 20s --out run

# The same network by a function that makes it:
fairbits init ../people.csv --model network:approver --trust-code --out factory.toml --yes \
  --target approved --favourable yes --protected sex,nationality,age
fairbits measure factory.toml --trust-code
