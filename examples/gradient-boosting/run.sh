python train.py
fairbits init ../people.csv --model scoring:approval --yes \
  --target approved --favourable yes --protected sex,nationality,age
fairbits audit subject.toml --budget 20s --out run
